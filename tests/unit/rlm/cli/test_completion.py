"""Completion as a shell asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_COMPLETE = """
eval "$(rlm --show-completion)"
COMP_WORDS=(rlm st) COMP_CWORD=1
_rlm_completion rlm
printf '%s\\n' "${COMPREPLY[@]}"
"""
_LOADED = """
import atexit, sys
from rlm.cli.main import COMMANDS, main

def loaded():
    modules = [source.module for source in COMMANDS.values()]
    return [name for name in modules if f"rlm.cli.{name}" in sys.modules]

atexit.register(lambda: sys.stderr.write(" ".join(loaded())))
main()
"""


def test_completion_when_bash_completes_a_command_then_those_that_begin_so(
    tmp_path: Path,
) -> None:
    program = tmp_path / "rlm"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m rlm "$@"\n')
    program.chmod(0o755)

    done = subprocess.run(
        ["bash", "--norc", "-c", _COMPLETE],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=False,
    )

    assert (done.stdout.split(), done.stderr) == (["status", "storage"], "")


def test_completion_when_a_command_is_completed_then_no_other_is_imported() -> None:
    asked = {"_RLM_COMPLETE": "complete_bash", "COMP_WORDS": "rlm st", "COMP_CWORD": "1"}

    done = _run(asked)

    assert done.stdout.split() == ["status", "storage"]
    assert done.stderr.split() == ["reading.status", "stores.storage"]


@pytest.mark.parametrize(
    ("argument", "expected"), [("-h", "status"), ("stats", "Did you mean 'status'?")]
)
def test_command_line_when_it_names_no_command_then_none_is_imported(
    argument: str, expected: str
) -> None:
    done = _run({}, argument)

    *text, loaded = f"{done.stdout}{done.stderr}".split("\n")
    assert expected in "\n".join(text)
    assert loaded == ""


def _run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _LOADED, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
