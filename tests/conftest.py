"""Marks each test with its level, which is its directory; has services that levels share."""

from __future__ import annotations

import gc
import os
import re
import signal
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.example_counts import register_profiles
from tests.run_checks import RunChecks
from tests.run_needs import RunNeeds
from tests.run_repeats import RunRepeats
from tests.run_report import RunReport
from tests.services.kafka import KafkaCluster
from tests.services.provider import CONTAINERS, PROCESSES, ServiceProvider, provider_named
from tests.services.service import ServiceError, ServiceMissingError
from tests.work_units import (
    WholeFolder,
    WorkUnits,
    give_more_time,
    is_filling_worker,
    is_whole_folder,
    lower_priority,
    rank,
    restore_priority,
    uses_services,
)

_MAX_NAME_CHARACTERS = 80
_HAS_LOW_PRIORITY = pytest.StashKey[bool]()

register_profiles()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--long`, for tests that take minutes, and the options that `make test` passes."""
    parser.addoption("--long", action="store_true", help="Run the tests marked long, too.")
    parser.addoption("--checks", metavar="COMMAND", help="Run COMMAND while the tests run.")
    parser.addoption(
        "--repeat",
        metavar="COUNT",
        type=int,
        default=0,
        help="Repeat at most COUNT failed tests with services, after the others.",
    )
    parser.addoption(
        "--services",
        choices=(PROCESSES, CONTAINERS),
        help="Where services run; by default in containers if an engine answers.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes of tests receive Ctrl-C, even if this process runs in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # garbage collection would take a third of the time in which pytest collects tests
    if is_filling_worker(os.environ):
        lower_priority()
        config.stash[_HAS_LOW_PRIORITY] = True
    config.pluginmanager.register(RunReport())
    config.pluginmanager.register(RunNeeds())
    if not hasattr(config, "workerinput"):
        _register_for_controller(config)
    if config.getoption("--services") == CONTAINERS:
        try:
            provider_named(CONTAINERS)
        except ServiceMissingError as error:
            raise pytest.UsageError(str(error)) from None


def _register_for_controller(config: pytest.Config) -> None:
    checks = config.getoption("--checks")
    if checks is not None:
        config.pluginmanager.register(RunChecks(checks, config.rootpath))
    config.pluginmanager.register(RunRepeats(config.getoption("--repeat")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its level, the name of its directory below tests/."""
    for item in items:
        _, level, _ = item.nodeid.split("/", 2)
        item.add_marker(getattr(pytest.mark, level))
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: rank(item.nodeid))
    if is_filling_worker(os.environ):
        give_more_time(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Restore the priority of the worker that fills pauses, before it starts services."""
    if uses_services(item.nodeid) and item.config.stash.get(_HAS_LOW_PRIORITY, False):
        item.config.stash[_HAS_LOW_PRIORITY] = False
        restore_priority()


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a folder that is one unit of work as a package."""
    return WholeFolder.from_parent(parent, path=path) if is_whole_folder(path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collect garbage from now on, also objects that the import of a command has frozen."""
    gc.unfreeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WorkUnits:
    """Hand out work in the order of the collected tests."""
    config.option.loadscopereorder = False
    return WorkUnits(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """End the run if a service that many tests share does not start."""
    try:
        return (yield)
    except ServiceError as error:
        if fixturedef.scope in ("session", "package"):
            request.session.shouldfail = str(error)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """End the run if the machine lacks what a service needs, because other tests need it too."""
    if call.excinfo is not None and isinstance(call.excinfo.value, ServiceMissingError):
        item.session.shouldfail = str(call.excinfo.value)
    return (yield)


@pytest.fixture(scope="session")
def services(pytestconfig: pytest.Config) -> ServiceProvider:
    """Makes servers as processes or in containers: `--services`."""
    return provider_named(pytestconfig.getoption("--services"))


@pytest.fixture(scope="session")
def kafka(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    """A cluster of one broker for the whole session; each test uses its own topic."""
    with services.kafka(tmp_path_factory.mktemp("kafka")) as cluster:
        yield cluster


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name for a topic that no other test uses; the topic is not created."""
    readable = re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)[:_MAX_NAME_CHARACTERS]
    return f"{readable}-{uuid.uuid4().hex[:8]}"
