"""Partitions change brokers, brokers lose checkpoints, topics grow: stored once, read whole."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from tests.e2e.three_brokers.leaders import reassign
from tests.e2e.three_brokers.paused_readers import assert_read_all, paused_readers
from tests.e2e.three_brokers.three_hosts import ThreeHosts, broker_of
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.waiting import wait_until

_CHECKPOINTS = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    ".kafka_cleanshutdown",
)


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
