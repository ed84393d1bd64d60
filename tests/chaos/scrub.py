"""Compares what the metadata says of a store with what is there. Changes nothing.

For a store that nobody writes to or deletes from at that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from rlmm.spi import RemoteLogMetadataManager, SegmentRecord
from rsm.layout.keys import ObjectKeys
from rsm.layout.originals import OriginalsKeys
from rsm.segment.coverage import stored_ranges
from rsm.segment.errors import NotFoundError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.storage.chunk_storage import ChunkStorage

_FINISHED = SegmentState.COPY_SEGMENT_FINISHED
_GONE = SegmentState.DELETE_SEGMENT_FINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbed:
    """How much was looked at, and each thing that is wrong, as sentences."""

    segments_count: int
    objects_count: int
    problems: tuple[str, ...]


def scrub(
    metadata: RemoteLogMetadataManager,
    storage: ChunkStorage,
    partitions: Iterable[TopicIdPartition],
    *,
    orphan_before_ms: int,
) -> Scrubbed:
    """Look for missing objects, holes, overlaps and what nothing names.

    Objects that nothing names count if they were last written before `orphan_before_ms`.
    """
    problems: list[str] = []
    named: dict[UUID, SegmentRecord] = {}
    for partition in partitions:
        records = tuple(metadata.list_remote_log_segments(partition, states=tuple(SegmentState)))
        named |= {record.metadata.segment_id.id: record for record in records}
        finished = [r for r in records if r.metadata.state is _FINISHED]
        problems += (p for record in finished for p in _missing(storage, record))
        problems += _holes(metadata, partition, finished)
        problems += _overlaps(metadata, partition, finished)
    objects = list(storage.list(""))
    keys = ObjectKeys()
    for found in objects:
        key = keys.parse(found.name)
        record = None if key is None else named.get(key.segment_id.id)
        if OriginalsKeys().parse(found.name) is not None:
            continue  # of a topic, not of a segment
        is_orphan = record is None or record.metadata.state is _GONE
        if is_orphan and found.last_modified_ms < orphan_before_ms:
            problems.append(f"{found.name} is named by nothing")
    return Scrubbed(segments_count=len(named), objects_count=len(objects), problems=tuple(problems))


def _missing(storage: ChunkStorage, record: SegmentRecord) -> Iterator[str]:
    for stored in record.metadata.objects:
        try:
            found = storage.info(stored.key)
        except NotFoundError:
            yield f"{stored.key} of a finished segment is missing"
            continue
        if found.length_bytes != stored.length_bytes:
            yield f"{stored.key} has {found.length_bytes} bytes, not {stored.length_bytes}"


def _holes(
    metadata: RemoteLogMetadataManager, partition: TopicIdPartition, finished: list[SegmentRecord]
) -> Iterator[str]:
    """Where the log's lineage has nothing between two stored ranges."""
    state = metadata.partition_state(partition)
    end_offset = state.first_readable_offset or 0
    for stored in stored_ranges(state.lineage, (record.metadata for record in finished)):
        if stored.offsets.start_offset > end_offset:
            yield f"{partition}: nothing is stored of [{end_offset}, {stored.offsets.start_offset})"
        end_offset = max(end_offset, stored.offsets.end_offset)


def _overlaps(
    metadata: RemoteLogMetadataManager, partition: TopicIdPartition, finished: list[SegmentRecord]
) -> Iterator[str]:
    """Where one claim has stored readable offsets twice.

    Two leaders may have, of the same history: each offset is read once then. Segments of histories
    that an election cut off are not readable, and overlap what came instead.
    """
    lineage = metadata.partition_state(partition).lineage
    furthest: dict[Writer, tuple[int, RemoteLogSegmentMetadata]] = {}
    for stored in stored_ranges(lineage, (record.metadata for record in finished)):
        found, offsets = stored.metadata, stored.offsets
        end_offset, before = furthest.get(found.writer, (0, found))
        if offsets.start_offset < end_offset:
            yield f"{partition}: {found.offsets} is stored as well as {before.offsets} by one claim"
        if offsets.end_offset > end_offset:
            furthest[found.writer] = (offsets.end_offset, found)
