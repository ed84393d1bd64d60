"""A mutant that needs an import: the tests run in a process that has not loaded its module."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from tests.mutation.groups import CHECKOUT
from tests.mutation.mutants import Mutant
from tests.mutation.probes import module_name

# Each run has the same tests, order and examples.
PYTEST_OPTIONS = (
    "-q",
    "-p",
    "no:randomly",
    "-p",
    "no:xdist",
    "--timeout=0",
    "--hypothesis-profile=mutants",
    "--tb=no",
    "--durations=0",
)
_NO_TEST_FAILED = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


class MutantFinder(MetaPathFinder):
    """Finds the module of a mutant in front of the file that it was made from."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._name = module_name(mutant.file)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        file = str(CHECKOUT / self._mutant.file)
        return spec_from_file_location(
            fullname, file, loader=_MutantLoader(fullname, file, self._mutant.source)
        )


class _MutantLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _ChosenTests:
    """Runs these tests in this order, and records the first one that fails or cannot be imported.

    A mutant may also prevent the import of a conftest of the tests. pytest then makes no report,
    and ends as if it was used wrongly.
    """

    def __init__(self, tests: Sequence[str], remark: Path) -> None:
        self._places = {test: place for place, test in enumerate(tests)}
        self._remark = remark

    @pytest.hookimpl(wrapper=True)
    def pytest_load_initial_conftests(self) -> Generator[None]:
        try:
            yield
        except pytest.UsageError:
            raise
        except Exception as error:
            self._remark.write_text(f"import of a conftest: {error}")
            raise

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._places]
        items[:] = sorted(chosen, key=lambda item: self._places[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._remark.write_text(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._remark.write_text(f"import of {report.nodeid}")


def survives_import(mutant: Mutant, tests: Sequence[str], remark: Path) -> bool:
    """Run these tests, named by their ids, with the mutant instead of its module.

    If the mutant does not survive, `remark` names the failed test or import; it is empty if pytest
    itself failed. Afterwards the process has the mutant loaded, so run nothing else in it.
    """
    if not tests:
        return True
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    sys.meta_path.insert(0, MutantFinder(mutant))
    try:
        import_module(module_name(mutant.file))
    except Exception:  # noqa: BLE001  # a mutant may fail of anything
        remark.write_text(f"import of {mutant.file}")
        return False
    result = pytest.main([*PYTEST_OPTIONS, "-x", *files], plugins=[_ChosenTests(tests, remark)])
    return result in _NO_TEST_FAILED
