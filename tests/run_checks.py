"""Checks the sources while the tests run: `make check` and `make test` run `make static` like this.

The checks count as one more test: the command is its name, and a failure shows the whole output.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.services.process import ServiceProcess

_DEADLINE_S = 1800.0
"""From the end of the last test."""


class RunChecks:
    """A pytest plugin for the process that controls the run. One object per run."""

    def __init__(self, command: str, directory: Path) -> None:
        """`directory` is the working directory of the command."""
        self._command = command
        self._directory = directory

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Start the command before the first test, and report it after the last one.

        If the run ends early, the command ends too.
        """
        with TemporaryDirectory() as scratch:
            log = Path(scratch) / "output.log"
            process = ServiceProcess(
                shlex.split(self._command),
                log_path=log,
                directory=self._directory,
            )
            try:
                outcome = yield
                waits_since = time.time()
                exit_code = process.wait(deadline_s=_DEADLINE_S)
            finally:
                process.kill(children=True)
            output = log.read_text(errors="replace")
        failure = None
        if exit_code:
            is_late = time.time() - waits_since >= _DEADLINE_S
            late = f"did not end within {_DEADLINE_S:.0f} s"
            how = late if is_late else f"ended with {exit_code}"
            failure = f"{output}\n`{self._command}` {how}"
        report = self._report(failure, waits_since)
        session.config.hook.pytest_runtest_logreport(report=report)
        return outcome

    def _report(self, failure: str | None, waits_since: float) -> pytest.TestReport:
        """Return the report of the checks; their time is the run's wait after its last test."""
        now = time.time()
        return pytest.TestReport(
            nodeid=self._command,
            location=(self._command, None, self._command),
            keywords={},
            outcome="passed" if failure is None else "failed",
            longrepr=failure,
            when="call",
            duration=now - waits_since,
            start=waits_since,
            stop=now,
        )
