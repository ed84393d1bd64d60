"""Three brokers with `rlm run` next to each, and a topic that is trimmed on all of them."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.e2e.three_brokers.three_hosts import ThreeHosts, three_hosts
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.kafka import KafkaCluster
from tests.services.provider import ServiceProvider
from tests.services.three_brokers import three_brokers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the hosts' logs with a failure, because it may occur once in a hundred runs."""
    report = yield
    hosts = item.funcargs.get("hosts")
    if report.failed and isinstance(hosts, ThreeHosts):
        report.sections.append(("hosts", hosts.log_tails()))
    return report


@pytest.fixture(scope="package")
def kafka_of_three(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    """Three brokers that all tests here share; a test leaves all of them running."""
    with three_brokers(services, tmp_path_factory.mktemp("kafka-of-three")) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def hosts(
    kafka_of_three: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ThreeHosts]:
    """The hosts of the three brokers; a test leaves all of them running."""
    with three_hosts(tmp_path_factory.mktemp("three-hosts"), kafka_of_three) as hosts:
        yield hosts


@pytest.fixture(scope="package")
def written(hosts: ThreeHosts, tmp_path_factory: pytest.TempPathFactory) -> WrittenTopic:
    """Three partitions, most of them in the store alone. Tests may write more to them."""
    name = tmp_path_factory.mktemp("written").name
    topic = WrittenTopic(hosts.cluster, name, partitions=3)
    topic.produce(3)
    topic.tier(hosts)
    hosts.cluster.restore_leaders()
    assert len(set(topic.leaders().values())) == 3
    return topic
