"""The compose stack and a tiered topic in it, which all tests here share.

A test leaves the stack running and ready. Tests of other folders run on if it does not start.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.containers.availability import WAY_OUT, engine_that_answers
from tests.containers.local_engine import SetUpError
from tests.containers.numbered_topic import NumberedTopic
from tests.containers.stack import ComposeStack
from tests.services.containers.engine import Engine
from tests.services.service import ServiceError

_STACK = pytest.StashKey[ComposeStack]()
_LINES_OF_EACH = "40"


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
    """Three brokers, a store, and three rlm of this checkout that are ready."""
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
def trimmed_topic(stack: ComposeStack) -> NumberedTopic:
    """A topic of which each partition's first records are in the store only."""
    topic = NumberedTopic(stack, "numbered")
    topic.create_tiered()
    topic.produce()
    topic.wait_trimmed()
    return topic
