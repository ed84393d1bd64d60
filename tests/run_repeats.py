"""Tests with real services that fail are repeated once, alone, at the end of `make test`.

On a busy machine such a test can meet an election, or a process that waits for a processor. If all
of a few failed tests then pass, the run passes, with every failure in its output: each shows a
fault of the test or of the code, and needs a cause. Tests without services and the checks of the
sources do not depend on the machine, so they are not repeated.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Sequence

import pytest

from tests.work_units import uses_services

_DEADLINE_S = 1800.0
_FAILED = ("failed", "error")
_FAILED_ONCE = "failed once"


class RunRepeats:
    """A pytest plugin for the process that controls the run. One object per run."""

    def __init__(self, most: int) -> None:
        """Repeat nothing if more than `most` tests fail: the run has another fault then."""
        self._most = most
        self._failed: dict[str, None] = {}  # in their order
        self._printed = ""
        self._all_passed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Repeat the failed tests after the checks of the sources; not if the run ends early."""
        outcome = yield
        failed = tuple(self._failed)
        if 0 < len(failed) <= self._most and all(map(uses_services, failed)):
            done = _run_again(session.config, failed)
            self._printed = done.stdout
            self._all_passed = done.returncode == pytest.ExitCode.OK
            if self._all_passed:
                session.testsfailed = 0
        return outcome

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the repetition after the failures; what passed then is no failure any more."""
        if not self._printed:
            return
        terminalreporter.section("the failed tests, repeated")
        terminalreporter.write(self._printed)
        if self._all_passed:
            stats = terminalreporter.stats
            stats[_FAILED_ONCE] = [each for kind in _FAILED for each in stats.pop(kind, [])]
            for nodeid in self._failed:
                terminalreporter.write_line(f"FAILED ONCE {nodeid}")


def _run_again(config: pytest.Config, failed: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run these tests in a new process, with services of their own."""
    services = config.getoption("--services")
    options = [] if services is None else [f"--services={services}"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", *options, *failed],
        cwd=config.rootpath,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
