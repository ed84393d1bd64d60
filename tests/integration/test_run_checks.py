"""Checks that run while the tests run, and count as one more test."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psutil
import pytest

from tests.integration.nested_run import run_pytest
from tests.services.waiting import wait_until

_CONFTEST = """
from tests.run_checks import RunChecks

def pytest_addoption(parser):
    parser.addoption("--checks")

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunChecks(config.getoption("--checks"), config.rootpath))
"""

_ENDS_EARLY = """
from pathlib import Path
import pytest
from tests.services.waiting import wait_until

def test_one():
    pid = Path("pid")
    wait_until(lambda: pid.exists() and pid.read_text().strip(), describe="the checks")
    pytest.exit("enough", returncode=7)
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_run_when_its_checks_fail_then_fails_with_their_whole_output(
    tmp_path: Path, workers: str
) -> None:
    lines = [f"found {number}" for number in range(3000)]
    (tmp_path / "found").write_text("\n".join(lines))

    done = _run(tmp_path, "sh -c 'cat found; echo later >&2; exit 3'", workers=workers)

    assert done.returncode == 1
    printed = done.stdout.splitlines()
    first = printed.index(lines[0])
    assert printed[first : first + len(lines) - 1] == lines[:-1]
    assert "later" in done.stdout
    assert "ended with 3" in done.stdout
    assert "FAILED sh -c 'cat found; echo later >&2; exit 3'" in done.stdout
    assert "1 failed, 1 passed" in printed[-1]


@pytest.mark.parametrize("workers", ["0", "1"])
def test_run_when_its_checks_pass_then_they_count_as_one_more_test(
    tmp_path: Path, workers: str
) -> None:
    done = _run(tmp_path, "sh -c 'echo fine'", workers=workers)

    assert done.returncode == 0
    assert "fine" not in done.stdout
    assert "2 passed" in done.stdout.splitlines()[-1]


def test_run_when_a_test_fails_then_fails_although_its_checks_pass(tmp_path: Path) -> None:
    done = _run(tmp_path, "true", tests="def test_one(): assert False\n")

    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout.splitlines()[-1]


def test_run_when_it_ends_early_then_its_checks_end_too(tmp_path: Path) -> None:
    checks = "sh -c 'sleep 987654 & echo $! > pid; wait'"

    done = _run(tmp_path, checks, tests=_ENDS_EARLY)

    assert done.returncode == 7
    sleeper = int((tmp_path / "pid").read_text())
    wait_until(lambda: _has_ended(sleeper), describe=f"the end of process {sleeper}")


def _has_ended(pid: int) -> bool:
    """Return whether a process has ended, even if its parent has not waited for it yet."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _run(
    directory: Path, checks: str, *, workers: str = "0", tests: str = "def test_one(): pass\n"
) -> subprocess.CompletedProcess[str]:
    (directory / "test_one.py").write_text(tests)
    return run_pytest(directory, _CONFTEST, "--checks", checks, "test_one.py", workers=workers)
