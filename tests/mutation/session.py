"""One pytest session that tries mutants: it loads all tests once, and forks for each mutant.

First it runs every test, without a mutant, and notes which lines each test executes. Then only the
tests that execute a mutant's statement run for it: first those that killed a mutant of the same
function, then the nearest, then the quickest.
"""

from __future__ import annotations

import os
import pickle
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, pairwise
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.mutation.fresh import PYTEST_OPTIONS
from tests.mutation.groups import CHECKOUT, Group
from tests.mutation.mutants import Mutant
from tests.mutation.probes import Probes, module_name
from tests.mutation.processes import Ended, Outcome, Task, end_with_parent, run_tasks
from tests.mutation.swapping import LoadedFunctions, Swap

_HOUR_S = 3600
_LEAST_CPU_S = 5
_PARTS_OF_A_JOB = 8  # some tests take a thousand times as long as others


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The tests without a mutant."""

    test_count: int
    seconds: float
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsImport:
    """A mutant that no loaded function can become, and the ids of its tests."""

    key: int
    tests: tuple[str, ...]


Message = Baseline | NeedsImport | Ended


@dataclass(kw_only=True)
class _Executed:
    """Which test executes which line, and how long each test takes."""

    tests: dict[str, dict[int, set[int]]] = field(default_factory=dict)
    cpu_s: dict[int, float] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)

    def add(self, part: _Executed) -> None:
        for file, lines in part.tests.items():
            own = self.tests.setdefault(file, {})
            for line, tests in lines.items():
                own.setdefault(line, set()).update(tests)
        self.cpu_s.update(part.cpu_s)
        self.failed.update(part.failed)

    def add_lines(self, test: int, lines: Mapping[str, Iterable[int]]) -> None:
        for file, executed in lines.items():
            own = self.tests.setdefault(file, {})
            for line in executed:
                own.setdefault(line, set()).add(test)

    def of_lines(self, file: str, first: int, last: int) -> set[int]:
        lines = self.tests.get(file, {})
        return {test for line in range(first, last + 1) for test in lines.get(line, ())}

    def of_file(self, file: str) -> set[int]:
        return {test for tests in self.tests.get(file, {}).values() for test in tests}


def serve(
    groups: Sequence[Group],
    mutants: Mapping[int, Mutant],
    *,
    jobs: int,
    test_cpu_s: float,
    directory: Path,
    answers: Connection,
) -> None:
    """Try the mutants and send each result; runs in a separate process."""
    os.setpgid(0, 0)
    end_with_parent()
    log = os.open(directory / "session.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    session = _MutantSession(
        groups, mutants, jobs=jobs, test_cpu_s=test_cpu_s, directory=directory, answers=answers
    )
    tests = sorted({test for group in groups for test in group.tests})
    session.install_probes()
    pytest.main([*PYTEST_OPTIONS, *tests], plugins=[session])
    answers.close()


class _MutantSession:
    """The pytest plugin that runs all tests without a mutant, and then those of each mutant."""

    def __init__(
        self,
        groups: Sequence[Group],
        mutants: Mapping[int, Mutant],
        *,
        jobs: int,
        test_cpu_s: float,
        directory: Path,
        answers: Connection,
    ) -> None:
        self._groups = {source: group for group in groups for source in group.sources}
        self._mutants = mutants
        self._jobs = jobs
        self._test_cpu_s = test_cpu_s
        self._directory = directory
        self._answers = answers
        self._items: list[pytest.Item] = []
        self._executed = _Executed()
        self._probes = Probes(self._groups)
        self._imported: Mapping[str, set[int]] = {}
        self._kills: Counter[tuple[str, str]] = Counter()
        self._failed = False
        self._remark: Path | None = None

    def install_probes(self) -> None:
        """Record, from now on, the statements that run while modules and tests are loaded."""
        self._probes.install()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._imported = self._probes.take()
        self._items = session.items
        baseline = self._run_without_mutant()
        self._answers.send(baseline)
        if not baseline.failed and not session.testsfailed:
            self._try_all()
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed:
            return
        self._failed = True
        if self._remark is not None:
            self._remark.write_text(report.nodeid)
            os._exit(1)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._answers.send(
                Baseline(test_count=0, seconds=0, failed=(f"import of {report.nodeid}",))
            )

    def _run_without_mutant(self) -> Baseline:
        started = time.monotonic()
        count = len(self._items)
        part_count = min(self._jobs * _PARTS_OF_A_JOB, count)
        bounds = [count * part // part_count for part in range(part_count + 1)]
        parts = [range(*ends) for ends in pairwise(bounds)]
        files = [self._directory / f"executed-{index}" for index in range(len(parts))]
        tasks = [
            Task(
                key=index,
                run=lambda _, part=part, file=file: self._write_executed(part, file),  # type: ignore[misc]  # no types for a lambda's defaults
                cpu_s=_HOUR_S,
            )
            for index, (part, file) in enumerate(zip(parts, files, strict=True))
        ]
        for ended in run_tasks(tasks, jobs=self._jobs, directory=self._directory):
            assert ended.outcome is Outcome.SURVIVED, ended
        for file in files:
            self._executed.add(pickle.loads(file.read_bytes()))  # noqa: S301  # a child's own
        return Baseline(
            test_count=len(self._items),
            seconds=time.monotonic() - started,
            failed=tuple(self._items[test].nodeid for test in sorted(self._executed.failed)),
        )

    def _write_executed(self, part: range, file: Path) -> bool:
        executed = _Executed()
        self._probes.take()
        for index in part:
            self._failed = False
            started = time.process_time()
            _run_one(self._items, index, part.stop)
            executed.cpu_s[index] = time.process_time() - started
            executed.add_lines(index, self._probes.take())
            if self._failed:
                executed.failed.add(index)
        file.write_bytes(pickle.dumps(executed))
        return True

    def _try_all(self) -> None:
        tasks = self._tasks(LoadedFunctions())
        for ended in run_tasks(tasks, jobs=self._jobs, directory=self._directory):
            self._kills[self._mutants[ended.key].function, ended.remark] += 1
            self._answers.send(ended)

    def _tasks(self, loaded: LoadedFunctions) -> Iterator[Task]:
        for key, mutant in self._mutants.items():
            first, last = mutant.function_lines
            runs_at_import = any(
                line in self._imported.get(mutant.file, ()) for line in range(first, last + 1)
            )
            swap = None if runs_at_import else loaded.swap_for(mutant)
            tests = self._tests_of(mutant)
            if swap is None:
                names = tuple(self._items[test].nodeid for test in tests)
                self._answers.send(NeedsImport(key=key, tests=names))
                continue
            cpu_s = sum(self._executed.cpu_s[test] for test in tests)
            yield Task(
                key=key,
                run=lambda remark, swap=swap, tests=tests: self._survives(swap, tests, remark),  # type: ignore[misc]  # no types for a lambda's defaults
                cpu_s=_LEAST_CPU_S + 3 * cpu_s,
            )

    def _tests_of(self, mutant: Mutant) -> list[int]:
        """Return the tests of the mutant's group that execute it, the most likely to fail first."""
        if mutant.function_lines == (0, 0):
            # A test may compare a constant or a default, and execute nothing of its module.
            files = {self._file_of(test) for test in self._executed.of_file(mutant.file)}
            files |= self._files_naming(module_name(mutant.file))
            every = range(len(self._items))
            executed = {test for test in every if self._file_of(test) in files}
        else:
            # The heads of cases and handlers have no probes.
            executed = self._executed.of_lines(mutant.file, *mutant.lines)
            if not executed:
                executed = self._executed.of_lines(mutant.file, *mutant.function_lines)
        directories = self._groups[mutant.file].tests
        stem = Path(mutant.file).stem

        def order(test: int) -> tuple[int, bool, float]:
            kills = self._kills[mutant.function, self._items[test].nodeid]
            return -kills, stem not in self._file_of(test), self._executed.cpu_s[test]

        own = (test for test in executed if self._file_of(test).startswith(directories))
        return sorted(self._within_budget(own), key=order)

    def _files_naming(self, module: str) -> set[str]:
        """Return the test files that contain a module's name, for example to import it."""
        files = {self._file_of(test): self._items[test].path for test in range(len(self._items))}
        return {file for file, path in files.items() if module in _text_of(path)}

    def _within_budget(self, tests: Iterable[int]) -> list[int]:
        """Return the quickest of these tests, as many as the time for one mutant allows."""
        quickest = sorted(tests, key=self._executed.cpu_s.__getitem__)
        totals = accumulate(self._executed.cpu_s[test] for test in quickest)
        return [
            test
            for index, (test, total) in enumerate(zip(quickest, totals, strict=True))
            if total <= self._test_cpu_s or not index
        ]

    def _file_of(self, test: int) -> str:
        return self._items[test].path.relative_to(CHECKOUT).as_posix()

    def _survives(self, swap: Swap, tests: Sequence[int], remark: Path) -> bool:
        swap.apply()
        self._remark = remark
        items = [self._items[test] for test in tests]
        for index in range(len(items)):
            _run_one(items, index, len(items))
        return True


@cache
def _text_of(path: Path) -> str:
    return path.read_text()


def _run_one(items: Sequence[pytest.Item], index: int, end: int) -> None:
    following = items[index + 1] if index + 1 < end else None
    items[index].config.hook.pytest_runtest_protocol(item=items[index], nextitem=following)
