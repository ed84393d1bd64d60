"""Generates the benchmarks' segments and their metadata records.

Segment `n` belongs to partition `n % PARTITIONS`. A partition's segments are consecutive, with the
same number of offsets and the same leader epoch. The number of a segment determines all of its
metadata, so that a lookup can be verified.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from uuid import UUID

from rlmm.codec import EncodedRecord
from rlmm.partitioner import metadata_partition
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind, partition_subject
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.segment.proto import segment_pb2 as pb_segment

PARTITIONS = 1_000
METADATA_PARTITIONS = 50
LEADER_EPOCH = 7
OFFSETS_PER_SEGMENT = 65_536
_PARTITIONS_PER_TOPIC = 10
_BROKERS = 20
SEGMENT_BYTES = 64 << 20
_NOW_MS = 1_700_000_000_000
_AT_ONCE = 20  # Each concurrent copy is of a different partition.
_SEGMENT_KIND = bytes((RecordKind.SEGMENT,))
_STATES = {
    SegmentState.COPY_SEGMENT_STARTED: pb_segment.COPY_SEGMENT_STARTED,
    SegmentState.COPY_SEGMENT_FINISHED: pb_segment.COPY_SEGMENT_FINISHED,
}


@dataclass(frozen=True, slots=True)
class CatalogueRecord:
    """Represents a record, and the partition of the metadata topic that it belongs to."""

    partition: int
    record: EncodedRecord


def user_partition(number: int) -> TopicIdPartition:
    """Return the partition that a segment belongs to."""
    index = number % PARTITIONS
    topic = index // _PARTITIONS_PER_TOPIC
    return TopicIdPartition(
        topic_id=UUID(bytes=_digest(b"topic", topic)),
        topic=f"topic-{topic}",
        partition=index % _PARTITIONS_PER_TOPIC,
    )


def segment_id(number: int) -> UUID:
    """Return the id of a segment."""
    return UUID(bytes=_digest(b"segment", number))


def start_offset(number: int) -> int:
    """Return the start offset of a segment."""
    return number // PARTITIONS * OFFSETS_PER_SEGMENT


def records(segments: int) -> Iterator[CatalogueRecord]:
    """Yield each segment's start and end events, ordered as concurrent copies write them."""
    partitions = [user_partition(number) for number in range(PARTITIONS)]
    targets = [metadata_partition(each, METADATA_PARTITIONS) for each in partitions]
    subjects = [partition_subject(each) for each in partitions]
    for first in range(0, segments, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, segments))
        for state in (SegmentState.COPY_SEGMENT_STARTED, SegmentState.COPY_SEGMENT_FINISHED):
            for number in numbers:
                index = number % PARTITIONS
                record = _record(number, partitions[index], subjects[index], state)
                yield CatalogueRecord(targets[index], record)


def _record(
    number: int, partition: TopicIdPartition, subject: bytes, state: SegmentState
) -> EncodedRecord:
    """Encode a record as `rlmm.codec.encode` does, but faster, because there are millions."""
    start, identity = start_offset(number), _digest(b"segment", number)
    event_id = _digest(state.name.encode(), number)
    finished = state is SegmentState.COPY_SEGMENT_FINISHED
    event = pb.MetadataEvent(min_fold_version=1, event_id=event_id)
    metadata = event.segment.metadata
    metadata.topic_id_partition.topic_id = partition.topic_id.bytes
    metadata.topic_id_partition.topic = partition.topic
    metadata.topic_id_partition.partition = partition.partition
    metadata.id = identity
    metadata.start_offset, metadata.end_offset = start, start + OFFSETS_PER_SEGMENT
    metadata.max_timestamp_ms = metadata.event_timestamp_ms = _NOW_MS
    metadata.segment_size_bytes = SEGMENT_BYTES
    metadata.segment_leader_epochs.add(epoch=LEADER_EPOCH, start_offset=start)
    metadata.state = _STATES[state]
    metadata.writer.broker_id = number % _BROKERS
    metadata.writer.leader_epoch = LEADER_EPOCH
    metadata.writer.incarnation = _digest(b"process", number % _BROKERS)
    metadata.layout = "raw"
    for suffix in ("log", "meta"):
        stored = metadata.objects.add()
        stored.key = f"tiered/{partition.topic}/{partition.partition}/{start:020}.{suffix}"
        if finished:
            stored.length_bytes, stored.crc32c = SEGMENT_BYTES, number & 0x7FFF_FFFF
    key = b"".join((_SEGMENT_KIND, subject, identity, event_id))
    return EncodedRecord(key=key, value=event.SerializeToString())


def _digest(kind: bytes, number: int) -> bytes:
    return blake2b(number.to_bytes(8, "big"), digest_size=16, person=kind[:16]).digest()
