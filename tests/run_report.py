"""Where a run's time went: a table of the levels and the slowest tests, after pytest's own summary.

Times are those of set-up, call and teardown together, summed over the workers: a level that shares
the machine with others takes less of the run's own time.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

_SLOWEST_COUNT = 20
_TESTS = "tests/"


class RunReport:
    """A pytest plugin that adds up what each test took. One object per run."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        levels = self._levels()
        if not levels:
            return
        terminalreporter.section("time of each level")
        for level, (test_count, seconds) in sorted(levels.items(), key=lambda each: -each[1][1]):
            terminalreporter.write_line(f"{seconds:9.1f} s  {test_count:6} tests  {level}")
        terminalreporter.section(f"slowest {_SLOWEST_COUNT} tests")
        slowest = sorted(self._seconds.items(), key=lambda each: -each[1])[:_SLOWEST_COUNT]
        for nodeid, seconds in slowest:
            terminalreporter.write_line(f"{seconds:9.1f} s  {nodeid.removeprefix(_TESTS)}")

    def _levels(self) -> dict[str, tuple[int, float]]:
        found: dict[str, tuple[int, float]] = {}
        for nodeid, seconds in self._seconds.items():
            level = nodeid.removeprefix(_TESTS).partition("/")[0]
            test_count, so_far = found.get(level, (0, 0.0))
            found[level] = (test_count + 1, so_far + seconds)
        return found
