"""Three hosts that all tests here share; a test leaves them connected, running and ready."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.hosts.operated_cluster import OperatedCluster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the hosts' logs with a failure."""
    report = yield
    cluster = item.funcargs.get("operated")
    if report.failed and isinstance(cluster, OperatedCluster):
        report.sections.append(("hosts", cluster.log_tails()))
    return report


@pytest.fixture(scope="package")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatedCluster]:
    directory = tmp_path_factory.mktemp("hosts")
    with OperatedCluster(directory) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def tiered(operated: OperatedCluster) -> str:
    """A topic with three segments in each partition, stored, and trimmed as far as possible."""
    topic = "tiered"
    operated.create_topic(topic)
    operated.produce(topic, segments=3)
    operated.hosts[0].rlm("topic", "set", topic, "--local-retention-ms", "1")
    operated.wait_trimmed(topic)
    return topic
