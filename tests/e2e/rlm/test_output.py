"""Commands whose standard output cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

VERSION = (sys.executable, "-m", "rlm", "--version")


def test_command_when_the_disk_is_full_then_one_line_and_exit_code_1() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(VERSION, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("rlm: standard output cannot be written")


def test_command_when_nobody_reads_then_ends_quietly() -> None:
    command = f"{sys.executable} -m rlm --version | true"

    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    assert done.stderr == ""
