"""Tests with real services that fail are repeated once, alone, at the end of a run.

On a busy machine such a test can meet an election, or a process that waits for a processor. If all
of a few failed tests then pass, the run passes, with every failure in its output. Each failure
shows a fault of the test or of the code; find its cause. Levels without services and the checks of
the sources do not depend on the machine, so they are not repeated.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.services.process import ServiceProcess
from tests.work_units import uses_services

_DEADLINE_S = 1800.0
_FAILED = ("failed", "error")
_FAILED_ONCE = "failed once"


class RunRepeats:
    """A pytest plugin for the process that controls the run. One object per run."""

    def __init__(self, limit: int) -> None:
        """Repeat nothing if more than `limit` tests fail: the run has another fault then."""
        self._limit = limit
        self._failed: dict[str, None] = {}  # in the order of their failures
        self._is_collected = True
        self._printed = ""
        self._all_passed = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._is_collected = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Repeat the failed tests after the checks of the sources; not if the run ends early."""
        outcome = yield
        failed = tuple(self._failed)
        are_few = 0 < len(failed) <= self._limit
        if are_few and self._is_collected and all(map(uses_services, failed)):
            exit_code, self._printed = _run_again(session.config, failed)
            # The summary shows that none was skipped. Processes may print more lines after it.
            summary = f"{len(failed)} passed in "
            have_run = any(line.startswith(summary) for line in self._printed.splitlines())
            self._all_passed = have_run and exit_code == pytest.ExitCode.OK
            if self._all_passed:
                session.testsfailed = 0
        return outcome

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the repetition after the failures; if all tests passed then, the run passes."""
        if not self._printed:
            return
        terminalreporter.section("the failed tests, repeated")
        terminalreporter.write(self._printed)
        if self._all_passed:
            stats = terminalreporter.stats
            stats[_FAILED_ONCE] = [each for kind in _FAILED for each in stats.pop(kind, [])]
            for nodeid in self._failed:
                terminalreporter.write_line(f"FAILED ONCE {nodeid}")


def _run_again(config: pytest.Config, failed: Sequence[str]) -> tuple[int, str]:
    """Run these tests in a new process with its own services; return exit code and output."""
    services = config.getoption("--services")
    options = [] if services is None else [f"--services={services}"]
    with TemporaryDirectory() as scratch:
        log = Path(scratch) / "output.log"
        process = ServiceProcess(
            [sys.executable, "-m", "pytest", "-q", "-n", "0", *options, *failed],
            log_path=log,
            directory=config.rootpath,
        )
        try:
            exit_code = process.wait(deadline_s=_DEADLINE_S)
        finally:
            process.kill(children=True)
        return exit_code, log.read_text(errors="replace")
