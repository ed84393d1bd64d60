"""The compose stack and a tiered topic in it, which all tests here share.

A test leaves the stack running and ready.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.containers.numbered_topic import NumberedTopic
from tests.containers.stack import ComposeStack


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the containers' logs with a failure."""
    report = yield
    stack = item.funcargs.get("stack")
    if report.failed and isinstance(stack, ComposeStack):
        report.sections.append(("containers", stack.script("compose", "logs", "--tail", "20")))
    return report


@pytest.fixture(scope="session")
def stack() -> Iterator[ComposeStack]:
    """Three brokers, a store, and three rlm that are ready."""
    with ComposeStack() as started:
        yield started


@pytest.fixture
def spark_cluster(stack: ComposeStack) -> Iterator[None]:
    """Spark's master and a worker, for one test."""
    with stack.spark():
        yield


@pytest.fixture(scope="session")
def trimmed_topic(stack: ComposeStack) -> NumberedTopic:
    """A topic of which each partition's first records are in the store only."""
    topic = NumberedTopic(stack, "numbered")
    topic.create_tiered()
    topic.produce()
    topic.wait_trimmed()
    return topic
