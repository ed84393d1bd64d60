"""Compares the metadata with the content of a store. Changes nothing.

Use it only while nobody writes to the store or deletes from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from rlmm.spi import RemoteLogMetadataManager, SegmentRecord
from rsm.layout.block_v2.layout import NAME as STREAMED_LAYOUT
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
    """The numbers of checked segments and objects, and each fault as a sentence.

    `streamed_count` is the number of stored segments of streams.
    """

    segments_count: int
    streamed_count: int
    objects_count: int
    problems: tuple[str, ...]


def scrub(
    metadata: RemoteLogMetadataManager,
    storage: ChunkStorage,
    partitions: Iterable[TopicIdPartition],
    *,
    orphan_before_ms: int,
) -> Scrubbed:
    """Look for missing objects, holes, overlaps and objects that nothing names.

    An object that nothing names counts if it was last written before `orphan_before_ms`.
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
            continue  # the object describes a topic, not a segment
        is_orphan = record is None or record.metadata.state is _GONE
        if is_orphan and found.last_modified_ms < orphan_before_ms:
            problems.append(f"{found.name} is named by nothing")
    return Scrubbed(
        segments_count=len(named),
        streamed_count=sum(map(_is_streamed, named.values())),
        objects_count=len(objects),
        problems=tuple(problems),
    )


def _is_streamed(record: SegmentRecord) -> bool:
    return record.metadata.state is _FINISHED and record.metadata.layout == STREAMED_LAYOUT


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
    """Yield gaps in the lineage between two stored ranges."""
    state = metadata.partition_state(partition)
    end_offset = state.first_readable_offset or 0
    for stored in stored_ranges(state.lineage, (record.metadata for record in finished)):
        if stored.offsets.start_offset > end_offset:
            yield f"{partition}: nothing is stored of [{end_offset}, {stored.offsets.start_offset})"
        end_offset = max(end_offset, stored.offsets.end_offset)


def _overlaps(
    metadata: RemoteLogMetadataManager, partition: TopicIdPartition, finished: list[SegmentRecord]
) -> Iterator[str]:
    """Yield readable offsets that one claim has stored twice.

    Two leaders may store the same offsets of one history; each offset is then read once. Segments
    of a history that an election cut off are not readable, and may overlap the later ones.
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
