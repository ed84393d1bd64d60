"""What a command prints for people, as it was reviewed: a file next to this one, 80 columns."""

from __future__ import annotations

from pathlib import Path

_GOLDEN = Path(__file__).parent / "golden"
_COLUMNS = 80


def golden_lines(name: str) -> list[str]:
    """The lines of a reviewed file; AssertionError if one is wider than a terminal."""
    lines = (_GOLDEN / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > _COLUMNS] == []
    return lines
