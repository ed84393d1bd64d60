"""Brokers write the ids of topics: most with a partition's directory, Kafka 2.8 only later."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rlm.source.partition_files import PARTITION_METADATA_FILE
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

_DEADLINE_S = 60.0


def write_topic_ids(cluster: KafkaCluster, directories: Iterable[Path]) -> None:
    """Have all brokers write the ids of these partitions' topics, and wait until they have.

    Brokers with a ZooKeeper do so when the controller moves, as docs/operations.md says.
    """
    if cluster.zookeeper is not None:
        cluster.zookeeper.move_controller()
    wait_for_topic_ids(directories)


def wait_for_topic_ids(directories: Iterable[Path]) -> None:
    """Wait until each of these partitions' directories has its topic's id."""
    wanted = list(directories)
    wait_until(
        lambda: not without_topic_id(wanted),
        _DEADLINE_S,
        lambda: f"ids are written in {without_topic_id(wanted)}",
    )


def without_topic_id(directories: Iterable[Path]) -> list[Path]:
    """Return those of these directories of partitions that have no topic id."""
    return [each for each in directories if not (each / PARTITION_METADATA_FILE).exists()]
