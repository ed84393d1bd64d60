"""A host with its own store next to the session's broker, and a topic that is tiered there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.crafted_logs import every_kind_of_batch, older_formats, plain
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.integration.rlm.gateway.twin_topics import TwinTopics, make_twins
from tests.integration.rlm.gateway.wire_client import WireClient
from tests.services.kafka import KafkaCluster
from tests.services.provider import ServiceProvider

_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture
def host(kafka: KafkaCluster, tmp_path: Path, topic_name: str) -> BrokerHost:
    return BrokerHost(tmp_path, kafka, metadata_topic=f"{topic_name}-metadata")


@pytest.fixture(scope="module")
def module_host(kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> BrokerHost:
    """A host for a module that tiers its own topic."""
    directory = tmp_path_factory.mktemp("host")
    return BrokerHost(directory, kafka, metadata_topic=f"metadata-{directory.name}")


@pytest.fixture(scope="package")
def tiered_host(kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> BrokerHost:
    """The host of `tiered`, for tests that change nothing."""
    directory = tmp_path_factory.mktemp("tiered-host")
    return BrokerHost(directory, kafka, metadata_topic=f"metadata-{directory.name}")


@pytest.fixture(scope="package")
def tiered(kafka: KafkaCluster, tiered_host: BrokerHost) -> TieredTopic:
    """Three partitions; most of the first two is in the store, first copied, then streamed."""
    topic = TieredTopic(kafka, f"tiered-{tiered_host.store.parent.name}", partitions=3)
    topic.produce(2, partition=0)
    topic.produce(2, partition=1)
    topic.produce(0, partition=2)
    topic.tier(tiered_host, streamed={0: 2, 1: 1})
    return topic


@pytest.fixture(scope="package")
def twin_topics(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TwinTopics]:
    """Topics on a separate broker. No test changes "every", "older", "plain" and "streamed"."""
    directory = tmp_path_factory.mktemp("twins")
    logs = {
        "every": every_kind_of_batch(),
        "older": older_formats(),
        "plain": plain(),
        "denied": plain(),
        "deleted": plain(6),
        "emptied": plain(),
        "recreated": plain(),
        "streamed": every_kind_of_batch(),
    }
    with services.kafka(directory / "kafka", properties=_AUTHORIZER) as cluster:
        host = BrokerHost(directory / "host", cluster, metadata_topic="twins-metadata")
        yield make_twins(host, logs, streamed=["streamed"])


@pytest.fixture(scope="module")
def gateway(twin_topics: TwinTopics) -> Iterator[RunningGateway]:
    """The gateway of the twins' broker, for modules without their own gateway."""
    with running_gateway(twin_topics.host) as gateway:
        yield gateway


@pytest.fixture
def client(gateway: RunningGateway) -> Iterator[WireClient]:
    """A client of the module's gateway."""
    with WireClient(gateway.bootstrap_servers) as client:
        yield client


@pytest.fixture
def broker(twin_topics: TwinTopics) -> Iterator[WireClient]:
    """A client of the twins' broker itself."""
    with WireClient(twin_topics.host.cluster.broker.address) as client:
        yield client
