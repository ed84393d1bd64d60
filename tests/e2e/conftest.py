"""A host with its own store next to the session's broker, and a topic to tier there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster


@pytest.fixture
def host(kafka: KafkaCluster, tmp_path: Path, topic_name: str) -> BrokerHost:
    return BrokerHost(tmp_path, kafka, metadata_topic=f"{topic_name}-metadata")


@pytest.fixture
def log(kafka: KafkaCluster, host: BrokerHost, topic_name: str) -> TieredLog:
    return TieredLog.create(kafka, topic_name, host.store)
