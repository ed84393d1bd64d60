"""Where a run's time went: tables of levels, fixtures and tests, after pytest's own summary.

Times are summed over the workers: a level that shares the machine with others takes less of the
run's own time. Set-up, test and teardown are separate, because the first test with a shared fixture
waits for it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

_SLOWEST_COUNT = 20
_FIXTURES_COUNT = 8
_LEAST_S = 0.05
_TESTS = "tests/"
_PROPERTY = "fixture set-up"
_PHASES = ("setup", "call", "teardown")


class RunReport:
    """A pytest plugin that adds up what each phase, fixture and test took. One object per run."""

    def __init__(self) -> None:
        self._phases: dict[str, dict[str, float]] = {phase: defaultdict(float) for phase in _PHASES}
        self._fixtures: dict[str, list[float]] = defaultdict(list)
        self._of_next_report: list[tuple[str, float]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Measure a fixture's time, without that of the fixtures that are its arguments."""
        started = time.perf_counter()
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - started
            if seconds > _LEAST_S:
                name = f"{fixturedef.baseid.removeprefix(_TESTS)} {fixturedef.argname}".lstrip()
                self._of_next_report.append((name, seconds))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send the times of fixtures with the test's report, from a worker too."""
        report = yield
        report.user_properties += [(_PROPERTY, each) for each in self._of_next_report]
        self._of_next_report.clear()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when not in self._phases:  # xdist's own report of a test whose worker crashed
            return
        self._phases[report.when][report.nodeid] += report.duration
        for kind, value in report.user_properties:
            if kind == _PROPERTY and isinstance(value, list | tuple):
                name, seconds = value
                self._fixtures[name].append(seconds)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        levels = self._levels()
        if not levels:
            return
        terminalreporter.section("time of each level")
        heads = "".join(f"{head:>11}" for head in ("set-up", "tests", "teardown"))
        terminalreporter.write_line(f"{heads}    count")
        for level, nodeids in sorted(levels.items(), key=lambda each: -self._seconds(each[1])):
            times = "".join(f"{self._seconds(nodeids, phase):9.1f} s" for phase in _PHASES)
            terminalreporter.write_line(f"{times}  {len(nodeids):7}  {level}")
        terminalreporter.section(f"slowest {_FIXTURES_COUNT} fixtures (set-up)")
        fixtures = sorted(self._fixtures.items(), key=lambda each: -sum(each[1]))
        for name, seconds in fixtures[:_FIXTURES_COUNT]:
            terminalreporter.write_line(f"{sum(seconds):9.1f} s  {len(seconds):4} times  {name}")
        terminalreporter.section(f"slowest {_SLOWEST_COUNT} tests (without set-up)")
        slowest = sorted(self._phases["call"].items(), key=lambda each: -each[1])[:_SLOWEST_COUNT]
        for nodeid, took_s in slowest:
            terminalreporter.write_line(f"{took_s:9.1f} s  {nodeid.removeprefix(_TESTS)}")

    def _levels(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for nodeid in self._phases["setup"]:
            found[nodeid.removeprefix(_TESTS).partition("/")[0]].append(nodeid)
        return found

    def _seconds(self, nodeids: list[str], *phases: str) -> float:
        return sum(self._phases[phase][each] for phase in phases or _PHASES for each in nodeids)
