"""A host with a store of its own beside the session's broker, and a topic that is tiered there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.services.kafka import KafkaCluster


@pytest.fixture
def host(kafka: KafkaCluster, tmp_path: Path, topic_name: str) -> BrokerHost:
    return BrokerHost(tmp_path, kafka, metadata_topic=f"{topic_name}-metadata")


@pytest.fixture(scope="module")
def module_host(kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> BrokerHost:
    """For tests that change nothing."""
    directory = tmp_path_factory.mktemp("host")
    return BrokerHost(directory, kafka, metadata_topic=f"metadata-{directory.name}")


@pytest.fixture(scope="module")
def tiered(kafka: KafkaCluster, module_host: BrokerHost) -> TieredTopic:
    """Three partitions, of which the first two are in the store for the greater part."""
    topic = TieredTopic(kafka, f"tiered-{module_host.store.parent.name}", partitions=3)
    topic.produce(4, partition=0)
    topic.produce(3, partition=1)
    topic.produce(0, partition=2)
    topic.tier(module_host)
    return topic
