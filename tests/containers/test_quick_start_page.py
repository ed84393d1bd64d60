"""docs/quickstart-containers.md, followed line by line: each command prints what the page shows."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

import pytest

from tests.containers.stack import CHECKOUT, environment
from tests.services.waiting import wait_until

pytestmark = pytest.mark.timeout(1200)
_PAGE = CHECKOUT / "docs" / "quickstart-containers.md"
_LATE = re.compile(r"rlm status|kafka-get-offsets")
_EFFECT_S = 300.0
# As the page's alias. This process has no terminal.
_STACK = """
stack() { command=$1; shift; deploy/stack.sh compose "$command" -T "$@"; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command of the page, and the lines that it prints; "…" is any text.

    `given` are the numbers of all the page's commands.
    """

    command: str
    expected: tuple[str, ...]
    given: frozenset[str]

    def is_shown_by(self, output: str) -> bool:
        """Whether these lines are in the output, in this order.

        Instead of a number that no command gives, the output may have any other, but not 0.
        """
        at = 0
        for line in self.expected:
            found = re.compile(self._pattern(line), re.MULTILINE).search(output, at)
            if found is None:
                return False
            at = found.end()
        return True

    def _pattern(self, line: str) -> str:
        parts = re.split(r"(…|\d[\d.]*)", line.strip())
        return r"^\s*" + "".join(self._part(each) for each in parts) + r"\s*$"

    def _part(self, text: str) -> str:
        if text == "…":
            return ".*"
        if not re.match(r"\d", text) or text == "0" or text in self.given:
            return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))
        return r"[\d.]*[1-9][\d.]*"


@pytest.mark.usefixtures("stack")
def test_quick_start_page_when_followed_then_prints_what_it_shows() -> None:
    steps = [each for each in _steps(_PAGE.read_text()) if each.command.startswith("stack ")]
    assert len(steps) == 6

    for step in steps:
        _follow(step)


def _follow(step: Step) -> None:
    if not _LATE.search(step.command):
        output = _run(step.command)
        assert step.is_shown_by(output), output
        return
    wait_until(
        lambda: step.is_shown_by(_run(step.command)),
        deadline_s=_EFFECT_S,
        describe=lambda: f"{step.command}\n{_run(step.command)}",
        interval_s=3.0,
    )


def _run(command: str) -> str:
    done = subprocess.run(
        ["sh", "-uc", f"{_STACK}\n{command}"],
        cwd=CHECKOUT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=180,
        check=False,
    )
    return done.stdout


def _steps(page: str) -> list[Step]:
    """The commands of the page's code blocks: lines after `$`, and what follows until the next."""
    found = []
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", page, re.MULTILINE):
        lines = [line.removeprefix("    ") for line in block.strip("\n").splitlines()]
        if not lines[0].startswith("$ "):
            continue
        length = next(n for n, line in enumerate(lines, start=1) if not line.endswith("\\"))
        command = "\n".join(lines[:length]).removeprefix("$ ")
        found.append((command, tuple(line for line in lines[length:] if line)))
    given = frozenset(number for command, _ in found for number in re.findall(r"\d+", command))
    return [Step(command=command, expected=lines, given=given) for command, lines in found]
