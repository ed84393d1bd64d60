"""Commands whose standard streams are closed or cannot be written."""

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
    assert line.startswith("rlm: cannot write to standard output")


def test_command_when_nobody_reads_then_ends_quietly() -> None:
    command = f"{sys.executable} -m rlm --version | true"

    done = _shell(command)

    assert done.stderr == ""


def test_command_when_standard_output_is_closed_then_one_line_and_exit_code_1() -> None:
    done = _closing(">&-")

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("rlm: cannot write to standard output: Bad file descriptor")


def test_command_when_standard_input_and_error_are_closed_then_works() -> None:
    done = _closing("<&- 2>&-")

    assert done.returncode == 0
    assert done.stdout.startswith("rlm ")


def test_command_when_standard_error_is_closed_then_the_exit_code_is_that_of_its_error() -> None:
    done = _closing("2>&-", "--no-such-option")

    assert done.returncode == 2


def test_command_when_all_streams_are_closed_then_no_other_file_gets_their_descriptors() -> None:
    program = "import os; import rlm.__main__ as p; p.open_closed_streams(); "
    program += "os._exit(os.open(os.devnull, os.O_RDONLY))"

    done = _shell(f'{sys.executable} -c "{program}" <&- >&- 2>&-')

    assert done.returncode > 2


def _closing(redirections: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = " ".join([sys.executable, "-m", "rlm", *(arguments or ("--version",))])
    return _shell(f"{command} {redirections}")


def _shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
