"""What `rlm secret rotate` prints, and that it fails if it cannot write."""

from __future__ import annotations

import secrets
from pathlib import Path
from uuid import uuid4

import pytest

from rlm.broker.cluster import ClusterView
from rlm.cli.events.secret import rotated_text
from rlm.cli.invocation.session import metadata_topic
from rlm.config.load import client_command_config
from rlm.operator.cluster_secret import SecretWriter
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.secret import cluster_secret
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rsm.segment.errors import InvalidConfigError
from tests.log_dir_builder import ManualClock
from tests.unit.rlm.cli.stated_managers import Cluster

WITHOUT_TOPICS = ClusterView(cluster_id="c", controller_id=1, brokers={}, topics={}, refused={})


def test_rotate_when_the_cluster_has_no_metadata_topic_then_refused_and_says_what_to_do(
    tmp_path: Path,
) -> None:
    """An earlier version reported success, although it wrote to memory only."""
    file = tmp_path / "client.properties"
    file.write_text("rlmm.config.remote.log.metadata.topic.name=elsewhere\n")
    config = client_command_config("broker:9092", file)
    clock = ManualClock()
    topic = metadata_topic(config, WITHOUT_TOPICS, create=False, clock=clock)
    metadata = TopicBasedRemoteLogMetadataManager(topic, MetadataCache(MemoryStore()), clock)
    assert metadata.wait_ready(1000).is_ready

    with pytest.raises(InvalidConfigError, match="no metadata topic") as raised:
        SecretWriter(metadata, uuid4, secrets.token_bytes).rotate()

    assert raised.value.context["topic"] == "elsewhere"
    assert "Start `rlm run`" in str(raised.value)
    assert "rlmm.config.remote.log.metadata.topic.name" in str(raised.value)
    assert cluster_secret(metadata) is None


def test_rotate_when_there_was_no_secret_then_none_is_said_to_stay_valid() -> None:
    writer = SecretWriter(Cluster().metadata, uuid4, secrets.token_bytes)

    first, second = rotated_text(writer.rotate()), rotated_text(writer.rotate())

    assert "there was none before" in first
    assert "valid for" not in first
    assert "the old one is valid for 10 min" in second
