"""The compose stack and a tiered topic in it, which all tests here share.

A test leaves the stack running and ready. If the stack does not start, the tests of other folders
still run.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.containers.availability import WAY_OUT, engine_that_answers
from tests.containers.local_engine import SetUpError
from tests.containers.numbered_topic import NumberedTopic
from tests.containers.stack import ComposeStack
from tests.services.containers.engine import Engine
from tests.services.service import ServiceError

_STACK = pytest.StashKey[ComposeStack]()
_LINES_OF_EACH = "40"
_FOLDER = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the containers' logs with a failure."""
    report = yield
    stack = item.config.stash.get(_STACK, None)
    if report.failed and stack is not None:
        logs = stack.script("compose", "logs", "--tail", _LINES_OF_EACH)
        report.sections.append(("containers", logs))
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Show what the stack reported of itself."""
    if _STACK in config.stash:
        for line in config.stash[_STACK].report:
            terminalreporter.line(line)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of trimmed records last: brokers trim the records while other tests run."""
    of_level = [each for each in items if each.path.is_relative_to(_FOLDER)]
    if of_level:
        first = items.index(of_level[0])
        of_level.sort(key=_begins)
        items[first : first + len(of_level)] = of_level


def _begins(item: pytest.Item) -> int:
    assert isinstance(item, pytest.Function)
    if "trimmed_topic" in item.fixturenames:
        return 2
    return 0 if "produced_topic" in item.fixturenames else 1


@contextmanager
def _failures_without_traceback() -> Iterator[None]:
    try:
        yield
    except (SetUpError, ServiceError) as error:
        message = f"cannot run the tests of containers: {error} {WAY_OUT}"
        raise pytest.fail.Exception(message, pytrace=False) from None


@pytest.fixture(scope="package")
def engine() -> Iterator[Engine]:
    """The engine that answers. If none does, one is set up, which ends after these tests."""
    with ExitStack() as exits:
        with _failures_without_traceback():
            found = exits.enter_context(engine_that_answers())
        yield found


@pytest.fixture(scope="package")
def stack(engine: Engine, pytestconfig: pytest.Config) -> Iterator[ComposeStack]:
    """Three brokers, a store, and three ready `rlm run` of this checkout."""
    with ExitStack() as exits:
        with _failures_without_traceback():
            started = exits.enter_context(ComposeStack(engine))
        pytestconfig.stash[_STACK] = started
        yield started


@pytest.fixture
def spark_cluster(stack: ComposeStack) -> Iterator[None]:
    """Spark's master and a worker, for one test."""
    with stack.spark():
        yield


@pytest.fixture(scope="package")
def produced_topic(stack: ComposeStack) -> NumberedTopic:
    """A topic whose records are trimmed when half a minute old: other tests run meanwhile."""
    topic = NumberedTopic(stack, "numbered")
    topic.create_tiered()
    topic.produce()
    return topic


@pytest.fixture(scope="package")
def trimmed_topic(produced_topic: NumberedTopic) -> NumberedTopic:
    """A topic whose first records of each partition are in the store only."""
    produced_topic.wait_trimmed()
    return produced_topic
