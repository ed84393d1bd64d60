"""The README's first quick start, followed in a clone of this checkout.

`make readme` runs the long test, too: it installs everything again, and runs `make test`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.readme_page import (
    QuickStart,
    clone_of_checkout,
    lend_installed,
    quick_start,
    run_in,
)

EXAMPLE = """
## Try it

    make demo   # a comment
    make test

`make demo` takes a minute and ends with a line such as

    demo: ok produced=2000 read=2000 segments=50 seconds=36

`make test` takes long and ends with `… passed in …`. More.

## Next
"""
DEMO_S = 500.0
INSTALL_AND_TEST_S = 4 * 3600.0


def test_quick_start_when_followed_in_a_clone_then_ends_as_the_readme_says(tmp_path: Path) -> None:
    """Scenarios 1 and 79, as a user sees them: all that is trimmed is stored, and read back."""
    clone = clone_of_checkout(tmp_path)
    start = quick_start((clone / "README.md").read_text())
    cloned = {path.name for path in clone.iterdir()}
    variables = lend_installed(clone)

    output = run_in(clone, start.commands[0], deadline_s=DEMO_S, variables=variables)

    assert start.commands[0] in start.endings
    assert _is_ending(start, start.commands[0], output), output
    assert {path.name for path in clone.iterdir()} - cloned == {".venv", "build"}
    assert [path.name for path in (clone / "build").iterdir() if "demo" in path.name] == []


@pytest.mark.long
@pytest.mark.timeout(0)
def test_quick_start_when_all_is_installed_from_nothing_then_each_command_ends_as_it_says(
    tmp_path: Path,
) -> None:
    clone = clone_of_checkout(tmp_path)
    start = quick_start((clone / "README.md").read_text())

    for command in start.commands:
        output = run_in(clone, command, deadline_s=INSTALL_AND_TEST_S)
        assert _is_ending(start, command, output), output


def test_quick_start_when_read_then_its_commands_are_those_of_these_tests() -> None:
    page = (Path(__file__).parents[2] / "README.md").read_text()

    start = quick_start(page)

    assert start.commands == ["make demo", "make demo STREAM=1", "make test"]
    assert start.endings.keys() == {"make demo", "make test"}


@pytest.mark.parametrize(
    ("command", "line", "expected"),
    [
        ("make demo", "demo: ok produced=2001 read=2001 segments=49 seconds=99", True),
        ("make demo", "demo: ok produced=2001 read=2000 segments=50 seconds=36", False),
        ("make demo", "demo: ok produced=2000 read=2000 segments=60 seconds=36", False),
        ("make demo", "demo: ok produced=2000 read=2000 seconds=36", False),
        ("make demo", "demo: failed: cannot trim", False),
        ("make test", "2 passed in 3 s", True),
        ("make test", "1 failed, 2 passed on 3 s", False),
    ],
)
def test_line_when_compared_with_the_readme_then_must_have_its_text_and_about_its_numbers(
    command: str, line: str, expected: bool
) -> None:
    assert quick_start(EXAMPLE).is_ending(command, line) is expected


def _is_ending(start: QuickStart, command: str, output: str) -> bool:
    return start.is_ending(command, output.splitlines()[-1])
