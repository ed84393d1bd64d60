"""Divides the tests among the workers of a run, and decides their order.

The tests of a file run in one worker, one after the other, because they share the file's fixtures.
Folders whose tests share something expensive (three brokers, a Spark session, a broker with crafted
logs) are one unit, and a package to pytest: their shared services start once, and end with them,
because three idle brokers with their managers take half a processor. The longest units begin first,
so that no worker is busy alone at the end. The Spark session is between the two folders of three
brokers, so that with two workers the second cluster mostly starts when the first has ended. The
compose stack is the last of these folders for the same reason. Nothing enforces this order, so
tests of three brokers must tolerate leaders that move under load. The order of equal units is
random.

Tests with services wait part of their time. Of three or more workers, the last one fills these
pauses: it first takes tests without services, and its processes have a lower priority. Next to busy
processes, that worker gets a tenth of a processor, so its tests have more time before they count as
hanging. When such tests run out, it takes tests with services like the other workers, at their
priority if it may raise its own; otherwise half of the processors' time would be free.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

_CHECKOUT = Path(__file__).parents[1]
_COMPUTING_FOLDERS = ("tests/architecture", "tests/unit/released_states")
_SERVICE_FOLDERS = (
    "tests/hosts",
    "tests/integration/spark_tools",
    "tests/e2e/three_brokers",
    "tests/integration/rlm/gateway/security",
    "tests/integration/rlm/gateway",
    "tests/integration/rsm/storage",
    "tests/containers",
)
_WHOLE_FOLDERS = (*_COMPUTING_FOLDERS, *_SERVICE_FOLDERS)
_LEAST_WORKERS = 3
_FILLING_NICENESS = 10
_FILLING_TIMEOUT_S = 1200
_COMPUTING = ("tests/simulation", "tests/contract", "tests/unit", "tests/architecture")
_LONGEST_FIRST = (*_SERVICE_FOLDERS, "tests/e2e", "tests/integration", "tests/simulation")


class WorkUnits(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist ships untyped
    """xdist's scheduler of scopes, with these units as scopes."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if _is_filling(node.gateway.id, len(self.nodes)):
            unit = next_computing(self.workqueue)
            if unit is not None:
                self.workqueue.move_to_end(unit, last=False)
        super()._assign_work_unit(node)


class WholeFolder(pytest.Package):
    """A folder that is one unit: fixtures of the scope "package" end with its last test."""

    def setup(self) -> None:
        """Do nothing, because the folder has no `__init__.py`."""


def is_whole_folder(path: Path) -> bool:
    """Return whether this directory is one unit; `path` is absolute."""
    return path.is_relative_to(_CHECKOUT) and str(path.relative_to(_CHECKOUT)) in _WHOLE_FOLDERS


def is_filling_worker(environ: Mapping[str, str]) -> bool:
    """Return whether an environment is that of the worker that fills the pauses of others."""
    worker = environ.get("PYTEST_XDIST_WORKER", "")
    return _is_filling(worker, int(environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def lower_priority() -> None:
    """Lower this process' priority, and that of the processes it starts."""
    os.nice(_FILLING_NICENESS)


def restore_priority() -> None:
    """Give this process its priority back, if it may."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - _FILLING_NICENESS)


def give_more_time(items: Iterable[pytest.Item]) -> None:
    """Raise the time after which these tests count as hanging."""
    for item in items:
        item.add_marker(pytest.mark.timeout(_FILLING_TIMEOUT_S))


def _is_filling(worker: str, worker_count: int) -> bool:
    return worker_count >= _LEAST_WORKERS and worker == f"gw{worker_count - 1}"


def uses_services(nodeid: str) -> bool:
    """Return whether a node id is a test of a level with real services."""
    is_test = nodeid.startswith("tests/")
    return is_test and not _computes(nodeid.partition("::")[0])


def _computes(unit: str) -> bool:
    return _place(unit, _COMPUTING) < len(_COMPUTING)


def next_computing(waiting: Iterable[str]) -> str | None:
    """Return the first of these units that needs no services; None if all of them do."""
    computing = [unit for unit in waiting if _computes(unit)]
    return min(computing, key=lambda unit: _place(unit, _COMPUTING), default=None)


def unit_of(nodeid: str) -> str:
    """Return the folder or file whose tests run together with this test."""
    return _unit_of_file(nodeid.partition("::")[0])


def rank(nodeid: str) -> int:
    """Return the unit's place in the order; earlier units have lower numbers."""
    return _place(nodeid.partition("::")[0], _LONGEST_FIRST)


@cache
def _unit_of_file(path: str) -> str:
    return next((folder for folder in _WHOLE_FOLDERS if is_below(path, folder)), path)


@cache
def _place(path: str, folders: tuple[str, ...]) -> int:
    """Return the index of the first folder that has this path; the number of folders if none.

    Cached, because the scheduler asks for all waiting units after each test.
    """
    places = (place for place, folder in enumerate(folders) if is_below(path, folder))
    return next(places, len(folders))


def is_below(path: str, folder: str) -> bool:
    """Return whether a file, by its path from the checkout, is in a folder or deeper."""
    return PurePosixPath(path).is_relative_to(folder)
