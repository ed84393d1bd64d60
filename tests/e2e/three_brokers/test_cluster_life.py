"""Partitions move, brokers lose their data, topics grow; stored data stays correct."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from rlmm.events.policy import topic_policies
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from tests.e2e.plain_consumer import read_records
from tests.e2e.three_brokers.leaders import reassign
from tests.e2e.three_brokers.paused_readers import assert_read_all, paused_readers
from tests.e2e.three_brokers.three_hosts import ThreeHosts, broker_of
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

_CHECKPOINTS = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    ".kafka_cleanshutdown",
)
_VALUE = b"v" * 16_000
_CUT_OFF = b"c" * 16_000
_REPLICAS = (2, 3)
_ROLLED_RECORDS = 380  # at least, of 400
_DEADLINE_S = 60.0


def test_partition_when_shrunk_moved_expanded_and_grown_then_stored_once_and_read_whole(
    hosts: ThreeHosts, tmp_path: Path, topic_name: str
) -> None:
    """Scenario 88: to fewer brokers, an empty broker, all brokers; scenario 24: more partitions."""
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
        wait_until(lambda: not _unfinished(metadata, topic_name), describe="all is finished")
        stored = [_stored(metadata, topic_name, number) for number in topic.records]
    assert all(map(_adjoin, stored))
    with paused_readers(
        hosts.bootstrap_servers, topic, tmp_path, readers=("librdkafka",)
    ) as readers:
        assert_read_all(readers, topic)


def test_partition_when_its_broker_lost_its_checkpoints_then_nothing_is_copied_or_read_twice(
    hosts: ThreeHosts, written: WrittenTopic, tmp_path: Path
) -> None:
    """Scenarios 91, 92: the broker's checkpoint files are lost; the metadata of `rlm` decides."""
    leader = broker_of(hosts.cluster, written.leaders()[0])
    with hosts.cluster.without(leader, killed=True):
        for log_dir in leader.log_dirs:
            for name in _CHECKPOINTS:
                (log_dir / name).unlink(missing_ok=True)
    written.produce(1)

    written.wait_trimmed()

    with hosts.any_host.metadata() as metadata:
        wait_until(lambda: not _unfinished(metadata, written.name), describe="all is finished")
        ranges = _stored(metadata, written.name, 0)
    assert _adjoin(ranges)
    with paused_readers(
        hosts.bootstrap_servers, written, tmp_path, readers=("librdkafka",)
    ) as readers:
        assert_read_all(readers, written)


def test_log_when_an_unclean_election_cut_it_off_then_held_until_it_is_resolved(
    hosts: ThreeHosts, topic_name: str
) -> None:
    """Scenarios 7, 8, 28; R5: copies continue; trims and deletions wait for the operator.

    This holds for a copied topic and for a streamed topic. Gateways never serve cut-off records.
    """
    topics = [_create(hosts, f"{topic_name}-{mode}", mode) for mode in ("segment", "stream")]
    current, lagging = (broker_of(hosts.cluster, node_id) for node_id in _REPLICAS)
    with hosts.any_host.metadata() as metadata:

        def wait_stored_above(least: dict[str, int]) -> dict[str, int]:
            def ends() -> dict[str, int]:
                return {topic: _stored_end(metadata, topic) for topic in topics}

            wait_until(
                lambda: all(end > least[topic] for topic, end in ends().items()),
                _DEADLINE_S,
                lambda: f"stored to {ends()}, expected more than {least}",
            )
            return ends()

        _produce(hosts, topics, 100)
        with _all_running_again(hosts.cluster):
            lagging.stop()
            _produce(hosts, topics, 300, _CUT_OFF)
            lost_ends = wait_stored_above(dict.fromkeys(topics, _ROLLED_RECORDS))
            current.kill()
            # The follower leads with fewer records, and then receives more than were lost.
            hosts.cluster.restart(lagging)
            _produce(hosts, topics, 400)
        for topic in topics:
            hosts.any_host.rlm("topic", "set", topic, "--local-retention-ms", "0")
        wait_stored_above(lost_ends)
        for topic in topics:
            _require_blocked_until_resolved(hosts, topic)
    for topic in topics:
        read = read_records(hosts.bootstrap_servers, topic)
        assert [offset for offset, _ in read] == list(range(len(read)))
        assert {value for _, value in read} == {_VALUE}


def _require_blocked_until_resolved(hosts: ThreeHosts, topic: str) -> None:
    wait_until(
        lambda: _status(hosts, topic).get("diverged") is True,
        _DEADLINE_S,
        lambda: f"diverged: {_status(hosts, topic)}",
    )
    held = _status(hosts, topic)

    shown = hosts.any_host.rlm("topic", "resolve", topic, "--yes")

    wait_until(
        lambda: int(_status(hosts, topic).get("local_start_offset") or 0) > 0,
        _DEADLINE_S,
        lambda: f"trims continue: {_status(hosts, topic)}",
    )
    assert f"{topic}:0 diverged: an election cut off" in shown
    assert (held["local_start_offset"], held["trim_blocked"]["reason"]) == (0, "diverged")
    assert _status(hosts, topic)["diverged"] is False


def _stored(metadata: RemoteLogMetadataManager, topic: str, number: int) -> list[tuple[int, int]]:
    """Return the base and end offsets of a partition's stored segments, ascending."""
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
    (policy,) = [each for each in topic_policies(metadata) if each.topic == topic]
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


def _create(hosts: ThreeHosts, topic: str, mode: str) -> str:
    """Create a topic whose followers may lead with fewer records, and tier it; return its name."""
    config = {
        "segment.bytes": str(1 << 20),
        "retention.ms": "-1",
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "true",
    }
    hosts.cluster.create_topic(topic, replicas=_REPLICAS, config=config)
    offload = ("--offload-mode", mode, "--offload-segment-rollover-ms", "2000")
    hosts.any_host.rlm("topic", "set", topic, "--local-retention-ms", "3600000", *offload)
    return topic


def _produce(hosts: ThreeHosts, topics: list[str], count: int, value: bytes = _VALUE) -> None:
    """Write that many records to each topic."""
    producer = Producer(
        {"bootstrap.servers": hosts.cluster.bootstrap_servers, "batch.num.messages": 5}
    )
    for _ in range(count):
        for topic in topics:
            producer.produce(topic, value, partition=0)
    assert producer.flush(60.0) == 0


def _stored_end(metadata: RemoteLogMetadataManager, topic: str) -> int:
    """Return the end of what is stored, in any lineage."""
    policies = [each for each in topic_policies(metadata) if each.topic == topic]
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
