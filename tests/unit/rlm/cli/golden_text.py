"""Compares a command's text with its reviewed form: a file next to this one, 80 columns wide.

`make golden` writes the files again, and a person reviews their differences.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
COLUMNS = 80
TYPED = "$ "
"""The prompt of a line that a person types; such a line is not output."""

_IS_WRITTEN = os.environ.get("REGENERATE") == "1"


def assert_golden(
    name: str, printed: Iterable[str], *, golden: Path = GOLDEN, is_narrow: bool = True
) -> None:
    """Raise AssertionError unless a reviewed file has these lines, each within the width."""
    lines, path = [*printed], golden / name
    printed_lines = [line for line in lines if not line.startswith(TYPED)]
    assert [line for line in printed_lines if is_narrow and len(line) > COLUMNS] == []
    if _IS_WRITTEN:
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert path.exists(), f"no reviewed text: `make golden` writes {path}"
    assert lines == path.read_text(encoding="utf-8").splitlines()


def titled(cases: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield the lines of several cases for one file, each below its title."""
    for number, (title, lines) in enumerate(cases.items()):
        if number:
            yield ""
        yield f"## {title}"
        yield from lines
