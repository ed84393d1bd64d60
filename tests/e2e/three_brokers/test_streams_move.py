"""The lead of a streamed partition moves while a segment is open (PIP-76)."""

from __future__ import annotations

from pathlib import Path

from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.storage.filesystem.store_root import INCOMING
from tests.e2e.streamed_log import assert_adjoining
from tests.e2e.three_brokers.leaders import move_leaders
from tests.e2e.three_brokers.paused_readers import assert_read_all, paused_readers
from tests.e2e.three_brokers.three_hosts import ThreeHosts
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.waiting import wait_until

_OPENING_SEGMENTS = 9  # of 1 MiB: more than opens a stream before its rollover time
_DEADLINE_S = 60.0


def test_stream_when_the_lead_moves_from_a_frozen_host_then_all_is_stored_and_read_once(
    hosts: ThreeHosts, topic_name: str, tmp_path: Path
) -> None:
    """Scenarios 27, 28: the next leader seals what it streams; the former one's late parts end."""
    topic = WrittenTopic(hosts.cluster, topic_name, partitions=1)
    streamed = ("--offload-mode", "stream", "--offload-segment-rollover", "10m")
    hosts.any_host.rlm("topic", "set", topic_name, "--local-retention-ms", "0", *streamed)
    topic.produce(_OPENING_SEGMENTS)
    former = topic.leaders()[0]
    with hosts.any_host.metadata() as metadata:
        left = _wait_open(metadata, topic_name, former)
        uploads = wait_until(
            lambda: list((hosts.any_host.store / INCOMING).glob("*")),
            _DEADLINE_S,
            "the upload of the open segment has begun",
        )
        with hosts.frozen(former):
            move_leaders(hosts.cluster, topic)
            topic.produce(1)
            _wait_open(metadata, topic_name, topic.leaders()[0])
            hosts.any_host.rlm("offload", topic_name)
        topic.produce(1)
        hosts.any_host.rlm("offload", topic_name)
        topic.wait_trimmed()
        wait_until(
            lambda: not any(map(Path.exists, uploads)),
            _DEADLINE_S,
            "the former leader has ended its upload",
        )
        stored = _in_state(metadata, topic_name, SegmentState.COPY_SEGMENT_FINISHED)

    assert left.segment_id not in {each.segment_id for each in stored}
    assert_adjoining(stored)
    with paused_readers(
        hosts.bootstrap_servers, topic, tmp_path, readers=("librdkafka",)
    ) as readers:
        assert_read_all(readers, topic)


def _wait_open(
    metadata: RemoteLogMetadataManager, topic: str, broker_id: int
) -> RemoteLogSegmentMetadata:
    """Wait until a broker's manager has an open segment; return its record."""

    def opened() -> list[RemoteLogSegmentMetadata]:
        started = _in_state(metadata, topic, SegmentState.COPY_SEGMENT_STARTED)
        return [each for each in started if each.is_open and each.writer.broker_id == broker_id]

    what = f"the manager of broker {broker_id} has opened a segment"
    return wait_until(opened, _DEADLINE_S, what)[0]


def _in_state(
    metadata: RemoteLogMetadataManager, topic: str, state: SegmentState
) -> list[RemoteLogSegmentMetadata]:
    """Return the segments of partition 0, ascending; none if the topic is not tiered yet."""
    ids = [each.topic_id for each in metadata.topic_policies() if each.topic == topic]
    return [
        record.metadata
        for topic_id in ids
        for record in metadata.list_remote_log_segments(
            TopicIdPartition(topic_id=topic_id, topic=topic, partition=0), states=(state,)
        )
    ]
