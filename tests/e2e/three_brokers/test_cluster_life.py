"""Partitions change brokers, brokers lose what they had, topics grow; what is stored holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from tests.e2e.three_brokers.leaders import reassign
from tests.e2e.three_brokers.paused_readers import assert_read_all, paused_readers
from tests.e2e.three_brokers.three_hosts import ThreeHosts, broker_of
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.waiting import wait_until

_CHECKPOINTS = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    ".kafka_cleanshutdown",
)
_VALUE = b"v" * 16_000
_DEADLINE_S = 60.0


def test_partition_when_shrunk_moved_expanded_and_grown_then_stored_once_and_read_whole(
    hosts: ThreeHosts, tmp_path: Path, topic_name: str
) -> None:
    """Scenario 88: to fewer brokers, to an empty one, to all; scenario 24: partitions are added."""
    topic = WrittenTopic(hosts.cluster, topic_name, partitions=1)
    topic.produce(2)
    topic.tier(hosts)
    for replicas in ([1], [2], [2, 3, 1]):
        reassign(hosts.cluster, topic, {0: replicas})
        topic.produce(1)
        topic.wait_trimmed()

    topic.grow(2)
    topic.produce(2)

    topic.wait_trimmed()
    with hosts.any_host.metadata() as metadata:
        wait_until(lambda: not _unfinished(metadata, topic_name), describe="nothing is left begun")
        stored = [_stored(metadata, topic_name, number) for number in topic.records]
    assert all(map(_adjoin, stored))
    with paused_readers(
        hosts.bootstrap_servers, topic, tmp_path, readers=("librdkafka",)
    ) as readers:
        assert_read_all(readers, topic)


def test_partition_when_its_broker_lost_its_checkpoints_then_nothing_is_copied_or_read_twice(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path
) -> None:
    """Scenarios 91, 92: HW, recovery point, log start and clean shutdown are gone; ours hold."""
    leader = broker_of(hosts.cluster, written.leaders()[0])
    with hosts.cluster.without(leader, killed=True):
        for log_dir in leader.log_dirs:
            for name in _CHECKPOINTS:
                (log_dir / name).unlink(missing_ok=True)
    written.produce(1)

    written.wait_trimmed()

    with hosts.any_host.metadata() as metadata:
        wait_until(lambda: not _unfinished(metadata, written.name), describe="nothing is begun")
        ranges = _stored(metadata, written.name, 0)
    assert _adjoin(ranges)
    with paused_readers(
        hosts.bootstrap_servers, written, tmp_path, readers=("librdkafka",)
    ) as readers:
        assert_read_all(readers, written)


def test_log_when_an_unclean_election_cut_it_off_then_held_until_it_is_resolved(
    hosts: ThreeHosts, topic_name: str
) -> None:
    """Scenarios 7, 8; R5: copies continue, nothing is trimmed or deleted, until it is accepted."""
    _create(hosts.cluster, topic_name)
    ahead, behind = (broker_of(hosts.cluster, node_id) for node_id in _replicas(hosts, topic_name))
    hosts.any_host.rlm("topic", "set", topic_name, "--local-retention-ms", "3600000")
    with hosts.any_host.metadata() as metadata:
        _produce(hosts, topic_name, 100)
        with _all_running_again(hosts.cluster):
            behind.stop()
            _produce(hosts, topic_name, 300)
            wait_until(
                lambda: _stored_end(metadata, topic_name) > 200,
                _DEADLINE_S,
                lambda: f"stored to {_stored_end(metadata, topic_name)}",
            )
            lost_end = _stored_end(metadata, topic_name)
            ahead.kill()
            # It leads with what it has, and takes more than was lost.
            hosts.cluster.restart(behind)
            _produce(hosts, topic_name, 400)
        hosts.any_host.rlm("topic", "set", topic_name, "--local-retention-ms", "0")
        wait_until(
            lambda: _status(hosts, topic_name).get("diverged") is True,
            _DEADLINE_S,
            lambda: f"diverged: {_status(hosts, topic_name)}",
        )
        wait_until(
            lambda: _stored_end(metadata, topic_name) > lost_end,
            _DEADLINE_S,
            "copying continues in the new history",
        )
        held = _status(hosts, topic_name)

        shown = hosts.any_host.rlm("topic", "resolve", topic_name, "--yes")

        wait_until(
            lambda: int(_status(hosts, topic_name).get("local_start_offset") or 0) > 0,
            _DEADLINE_S,
            lambda: f"trims go on: {_status(hosts, topic_name)}",
        )
    assert f"{topic_name}:0 diverged: an election cut off" in shown
    assert (held["local_start_offset"], held["trim_blocked"]["reason"]) == (0, "diverged")
    assert _status(hosts, topic_name)["diverged"] is False


def _stored(metadata: RemoteLogMetadataManager, topic: str, number: int) -> list[tuple[int, int]]:
    """(base, end) of what is stored of a partition, ascending."""
    return [
        (record.metadata.offsets.start_offset, record.metadata.offsets.end_offset)
        for tip in _partitions(metadata, topic)
        if tip.partition == number
        for record in metadata.list_remote_log_segments(
            tip, states=(SegmentState.COPY_SEGMENT_FINISHED,)
        )
    ]


def _adjoin(ranges: list[tuple[int, int]]) -> bool:
    return all(before[1] == after[0] for before, after in pairwise(ranges))


def _unfinished(metadata: RemoteLogMetadataManager, topic: str) -> list[object]:
    states = (SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED)
    return [
        record
        for tip in _partitions(metadata, topic)
        for record in metadata.list_remote_log_segments(tip, states=states)
    ]


def _partitions(metadata: RemoteLogMetadataManager, topic: str) -> list[TopicIdPartition]:
    (policy,) = [each for each in metadata.topic_policies() if each.topic == topic]
    return list(metadata.partitions_of(policy.topic_id, topic))


@contextmanager
def _all_running_again(cluster: KafkaCluster) -> Iterator[None]:
    try:
        yield
    finally:
        for broker in cluster.brokers:
            if not broker.is_running:
                cluster.restart(broker)
        cluster.restore_leaders()


def _create(cluster: KafkaCluster, topic: str) -> None:
    config = {
        "segment.bytes": str(1 << 20),
        "retention.ms": "-1",
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "true",
    }
    cluster.create_topic(topic, replication_factor=2, config=config)


def _replicas(hosts: ThreeHosts, topic: str) -> list[int]:
    metadata = admin_client(hosts.cluster.bootstrap_servers).list_topics(topic, 10.0)
    replicas: list[int] = metadata.topics[topic].partitions[0].replicas
    return replicas


def _produce(hosts: ThreeHosts, topic: str, count: int) -> None:
    producer = Producer(
        {"bootstrap.servers": hosts.cluster.bootstrap_servers, "batch.num.messages": 5}
    )
    for _ in range(count):
        producer.produce(topic, _VALUE, partition=0)
    assert producer.flush(60.0) == 0


def _stored_end(metadata: RemoteLogMetadataManager, topic: str) -> int:
    """The end of what is stored of any history."""
    policies = [each for each in metadata.topic_policies() if each.topic == topic]
    return max(
        (
            record.metadata.offsets.end_offset
            for policy in policies
            for tip in metadata.partitions_of(policy.topic_id, topic)
            for record in metadata.list_remote_log_segments(
                tip, states=(SegmentState.COPY_SEGMENT_FINISHED,)
            )
        ),
        default=0,
    )


def _status(hosts: ThreeHosts, topic: str) -> dict[str, Any]:
    shown = hosts.any_host.try_rlm("status", topic, "--json").stdout
    rows: list[dict[str, Any]] = json.loads(shown)["partitions"]
    return rows[0]
