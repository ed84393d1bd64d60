"""Jobs whose standard streams are closed or whose reader is gone, and Ctrl-C in their imports."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

JOBS = ("audit", "export", "repair")

_INTERRUPTED_IMPORT = """
import signal, sys
from spark_tools.submit.rlm_{job} import main

class Interruption:
    def find_spec(self, name, *_others):
        if name == "spark_tools.{job}.command":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interruption())
main()
"""

_PRINTING = """
import signal, sys
from argparse import Namespace
from spark_tools.invocation.ending import JobOutcome, end_job, print_line, run_job

def job():
    arguments = Namespace(json=False, summary=None, fail_on=tuple(JobOutcome))
    print_line(arguments, "first")
    sys.stderr.write("worked\\n")
    sys.stdin.readline()
    for number in range(10):
        print_line(arguments, str(number))
    sys.stderr.write("worked\\n")
    return end_job(arguments, "rlm-x", JobOutcome.DATA_LOSS, {})

run_job("rlm-x", job)
"""


@pytest.mark.parametrize("job", JOBS)
def test_job_when_interrupted_during_its_imports_then_ends_by_the_signal_without_text(
    job: str,
) -> None:
    command = [sys.executable, "-c", _INTERRUPTED_IMPORT.format(job=job)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_job_when_its_reader_ends_then_it_continues_and_its_exit_code_is_that_of_its_outcome() -> (
    None
):
    with subprocess.Popen(
        [sys.executable, "-c", _PRINTING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write("continue\n")
        process.stdin.close()
        said = process.stderr.read()

    assert (process.returncode, said) == (4, "worked\nworked\n")


@pytest.mark.parametrize("option", ["--version", "--help"])
@pytest.mark.parametrize("job", JOBS)
def test_job_when_nobody_reads_its_help_then_ends_quietly(job: str, option: str) -> None:
    done = _shell(f"{_command(job)} {option} | true")

    assert done.stderr == ""


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
@pytest.mark.parametrize("option", ["--version", "--help"])
def test_job_when_its_help_cannot_be_written_then_one_line_and_exit_code_1(
    option: str, redirection: str
) -> None:
    done = _shell(f"{_command('audit')} {option} {redirection}")

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("rlm-audit: cannot write to standard output: ")


def test_job_when_its_lines_cannot_be_written_then_one_line_and_exit_code_1() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", _PRINTING],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("rlm-x: cannot write to standard output: No space left on device")


def test_job_when_standard_input_and_error_are_closed_then_works() -> None:
    done = _shell(f"{_command('audit')} --version <&- 2>&-")

    assert done.returncode == 0
    assert done.stdout.startswith("rlm-audit ")


def _command(job: str) -> str:
    return f"{sys.executable} -m spark_tools.submit.rlm_{job}"


def _shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
