"""A streamed partition under test: its policy, and what must be stored of it."""

from __future__ import annotations

from itertools import pairwise
from uuid import uuid4

from confluent_kafka import Producer

from rlmm.events.policy import UNLIMITED, PolicyState, TopicPolicy, TopicPolicyChanged
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.offload_settings import OffloadMode
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until

ROLLOVER_MS = 2_000
OBJECT_BYTES = 2_500_000  # more than two of the broker's segments
STORED_WITHIN_S = 60.0
_VALUE_BYTES = 16_000


def set_mode(
    metadata: RemoteLogMetadataManager,
    log: TieredLog,
    mode: OffloadMode = OffloadMode.STREAM,
    *,
    local_retention_ms: int = UNLIMITED,
    retention_ms: int = UNLIMITED,
    rollover_ms: int = ROLLOVER_MS,
    object_bytes: int = OBJECT_BYTES,
) -> None:
    """Publish a policy that tiers the topic in a mode, with small objects."""
    policy = TopicPolicy(
        topic=log.topic,
        topic_id=log.partition.topic_id,
        state=PolicyState.ACTIVE,
        retention_ms=retention_ms,
        retention_bytes=UNLIMITED,
        local_retention_ms=local_retention_ms,
        offload_mode=mode,
        offload_segment_max_bytes=object_bytes,
        offload_segment_rollover_ms=rollover_ms,
    )
    assert metadata.publish(TopicPolicyChanged(event_id=uuid4(), policy=policy)).accepted


def produce_transactions(cluster: KafkaCluster, log: TieredLog, count: int) -> dict[int, bytes]:
    """Write transactions of three records, every third aborted; return the committed values."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers}
    producer = Producer({**settings, "transactional.id": f"{log.topic}-{uuid4()}"})
    producer.init_transactions(30.0)
    committed: dict[int, bytes] = {}
    for number in range(count):
        written: dict[int, bytes] = {}

        def note(_: object, message: object, written: dict[int, bytes] = written) -> None:
            written[message.offset()] = message.value()  # type: ignore[attr-defined]  # a Message

        producer.begin_transaction()
        for each in range(3):
            value = (b"%d-%d." % (number, each)).ljust(_VALUE_BYTES, b"v")
            producer.produce(log.topic, value=value, partition=0, on_delivery=note)
        assert producer.flush(30.0) == 0
        if number % 3:
            producer.commit_transaction(30.0)
            committed.update(written)
        else:
            producer.abort_transaction(30.0)
    return committed


def wait_stored(
    log: TieredLog, metadata: RemoteLogMetadataManager, content: bytes | None = None
) -> list[RemoteLogSegmentMetadata]:
    """Wait until all of `content` is stored; by default the local log with its active file."""

    def is_stored() -> bool:
        wanted = local_content(log) if content is None else content
        segments = log.finished(metadata)
        if sum(each.segment_size_bytes for each in segments) != len(wanted):
            return False  # comparing sizes first avoids slow reads
        return b"".join(map(log.stored_content, segments)) == wanted

    wait_until(
        is_stored,
        STORED_WITHIN_S,
        lambda: f"stored: {[str(each.offsets) for each in log.finished(metadata)]}",
    )
    return log.finished(metadata)


def local_content(log: TieredLog) -> bytes:
    """Return the bytes of all local files."""
    return b"".join(file.content for file in log.files())


def assert_adjoining(segments: list[RemoteLogSegmentMetadata]) -> None:
    """Require that each segment begins where the previous one ends, and the first at 0."""
    assert segments[0].offsets.start_offset == 0
    assert all(a.offsets.end_offset == b.offsets.start_offset for a, b in pairwise(segments))
