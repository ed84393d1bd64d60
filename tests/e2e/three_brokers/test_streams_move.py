"""The lead of a streamed partition moves while a segment is open (PIP-76)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlmm.events.policy import topic_policies
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.storage.filesystem.store_root import INCOMING
from tests.e2e.s3_store import BUCKET, s3_store
from tests.e2e.streamed_log import assert_adjoining
from tests.e2e.three_brokers.leaders import move_leaders
from tests.e2e.three_brokers.paused_readers import assert_read_all, paused_readers
from tests.e2e.three_brokers.three_hosts import ThreeHosts, three_hosts
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.kafka import KafkaCluster
from tests.services.s3 import S3Server, credentials_environment
from tests.services.waiting import wait_until

_OPENING_SEGMENTS = 9  # of 1 MiB: more than opens a stream before its rollover time
_DEADLINE_S = 60.0


@pytest.fixture
def hosts_on_s3(
    kafka_of_three: KafkaCluster,
    hosts: ThreeHosts,
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[ThreeHosts]:
    """Other hosts of the same brokers, with another metadata topic; the shared hosts do not run."""
    for name, value in credentials_environment().items():
        monkeypatch.setenv(name, value)
    hosts.stop()
    with three_hosts(tmp_path / "hosts", kafka_of_three, settings=s3_store(s3_server)) as on_s3:
        yield on_s3
    hosts.start()


def test_stream_when_the_lead_moves_from_a_frozen_host_then_all_is_stored_and_read_once(
    hosts: ThreeHosts, topic_name: str, tmp_path: Path
) -> None:
    """Scenarios 27, 28: the next leader seals its segments; the former leader ends its upload."""
    incoming = hosts.any_host.store / INCOMING
    _assert_stored_and_read_once(
        hosts, topic_name, tmp_path, uploads=lambda: {each.name for each in incoming.glob("*")}
    )


def test_stream_when_the_lead_moves_on_s3_then_the_former_upload_is_aborted(
    hosts_on_s3: ThreeHosts, s3_server: S3Server, topic_name: str, tmp_path: Path
) -> None:
    """The former leader's late parts are refused, because the next leader aborts the upload."""

    def uploads() -> set[str]:
        found = s3_server.client().list_multipart_uploads(Bucket=BUCKET)
        return {each["UploadId"] for each in found.get("Uploads", ())}

    _assert_stored_and_read_once(
        hosts_on_s3, topic_name, tmp_path, uploads=uploads, ends_while_frozen=True
    )


def _assert_stored_and_read_once(
    hosts: ThreeHosts,
    topic_name: str,
    directory: Path,
    *,
    uploads: Callable[[], set[str]],
    ends_while_frozen: bool = False,
) -> None:
    """Move the lead from a frozen host in the middle of an upload, and produce more.

    `uploads` returns those in progress. With `ends_while_frozen`, the next leader must end the
    former leader's upload.
    """
    topic = WrittenTopic(hosts.cluster, topic_name, partitions=1)
    streamed = ("--offload-mode", "stream", "--offload-segment-rollover", "10m")
    hosts.any_host.rlm("topic", "set", topic_name, "--local-retention-ms", "0", *streamed)
    # After a stored segment, the next leader knows how long the following records have waited.
    topic.produce(1)
    hosts.any_host.rlm("offload", topic_name)
    topic.produce(_OPENING_SEGMENTS)
    former = topic.leaders()[0]
    with hosts.any_host.metadata() as metadata:
        left = _wait_open(metadata, topic_name, former)
        begun = wait_until(uploads, _DEADLINE_S, "the upload of the open segment has begun")

        def wait_ended(who: str) -> None:
            wait_until(
                lambda: begun.isdisjoint(uploads()), _DEADLINE_S, f"{who} has ended the upload"
            )

        with hosts.frozen(former):
            move_leaders(hosts.cluster, topic)
            topic.produce(1)
            _wait_open(metadata, topic_name, topic.leaders()[0])
            started = _in_state(metadata, topic_name, SegmentState.COPY_SEGMENT_STARTED)
            assert left.segment_id not in {each.segment_id for each in started}
            if ends_while_frozen:
                wait_ended("the next leader")
            hosts.any_host.rlm("offload", topic_name)
        topic.produce(1)
        hosts.any_host.rlm("offload", topic_name)
        topic.wait_trimmed()
        wait_ended("the former leader")
        stored = _in_state(metadata, topic_name, SegmentState.COPY_SEGMENT_FINISHED)

    assert left.segment_id not in {each.segment_id for each in stored}
    assert_adjoining(stored)
    with paused_readers(
        hosts.bootstrap_servers, topic, directory, readers=("librdkafka",)
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
    """Return segments of partition 0, ascending; none if the topic is not tiered yet."""
    ids = [each.topic_id for each in topic_policies(metadata) if each.topic == topic]
    return [
        record.metadata
        for topic_id in ids
        for record in metadata.list_remote_log_segments(
            TopicIdPartition(topic_id=topic_id, topic=topic, partition=0), states=(state,)
        )
    ]
