"""Runs the commands of a documentation page, and checks that they print what it shows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.containers.stack import CHECKOUT, environment
from tests.services.waiting import wait_until

_LATE = re.compile(r"rlm status|kafka-get-offsets")
_EFFECT_S = 300.0
# A Spark job is one command, and takes minutes.
_COMMAND_S = 600.0
_ALIAS = 'alias stack="deploy/stack.sh compose"'
# This function replaces the alias, because this process has no terminal.
_STACK = """
stack() { command=$1; shift; deploy/stack.sh compose "$command" -T "$@"; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command of the page, and the lines that it prints; "…" is any text.

    `given` has the numbers that occur in any command of the page.
    """

    command: str
    expected: tuple[str, ...]
    given: frozenset[str]

    def is_shown_by(self, output: str) -> bool:
        """Return whether these lines are in the output, in this order.

        A number of the page that is in no command may be any number but 0 in the output.
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


def follow(page: Path, printed: Mapping[str, str]) -> int:
    """Run all commands of a page, and return their number; the alias does not count.

    `printed` has the output of commands that ran before. Raises AssertionError for the first
    command whose output differs from the page.
    """
    steps = [each for each in _steps(page.read_text()) if each.command != _ALIAS]
    for step in steps:
        _follow(step, printed)
    return len(steps)


def _follow(step: Step, printed: Mapping[str, str]) -> None:
    if step.command in printed:
        assert step.is_shown_by(printed[step.command]), printed[step.command]
        return
    if not _LATE.search(step.command):
        done = _run(step.command)
        assert done.returncode == 0, done.stdout
        assert step.is_shown_by(done.stdout), done.stdout
        return
    wait_until(
        lambda: step.is_shown_by(_run(step.command).stdout),
        deadline_s=_EFFECT_S,
        describe=lambda: f"{step.command}\n{_run(step.command).stdout}",
        interval_s=3.0,
    )


def _run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-uc", f"{_STACK}\n{command}"],
        cwd=CHECKOUT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_COMMAND_S,
        check=False,
    )


def _steps(page: str) -> list[Step]:
    """Return the steps in the page's code blocks: a command after `$`, output up to the next."""
    found = []
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", page, re.MULTILINE):
        text = re.sub(r"^    ", "", block, flags=re.MULTILINE)
        for example in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            lines = example.strip("\n").splitlines()
            length = next(n for n, line in enumerate(lines, start=1) if not line.endswith("\\"))
            expected = tuple(line for line in lines[length:] if line)
            found.append(("\n".join(lines[:length]), expected))
    given = frozenset(number for command, _ in found for number in re.findall(r"\d+", command))
    return [Step(command=command, expected=lines, given=given) for command, lines in found]
