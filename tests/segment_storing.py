"""Copies built segments to a store, as the leader of a partition does, without its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rsm.segment.batches.batch import scan_batches
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import (
    AbortedTransaction,
    BytesSource,
    LogSegmentData,
    SegmentCompanions,
)
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.spi import CopiedSegment, CopyAttempt, PlannedObjects, RemoteStorageManager
from tests.segment_builder import BuiltSegment


class _NoBounds(CopyAttempt):
    def check(self) -> None:
        """Do nothing: an attempt without a deadline."""


def planned_segment(
    storage: RemoteStorageManager,
    segment: BuiltSegment,
    segment_id: RemoteLogSegmentId,
    *,
    writer: Writer,
    lineage: Lineage,
    end_offset: int | None = None,
    written_ms: int = 0,
) -> RemoteLogSegmentMetadata:
    """Describe a copy that starts; `end_offset` is the next base after a compaction gap."""
    end = segment.offsets.end_offset if end_offset is None else end_offset
    offsets = replace(segment.offsets, end_offset=end)
    size_bytes = len(segment.log)
    planned = storage.plan_objects(segment_id, offsets.start_offset, size_bytes=size_bytes)
    headers = [header for _, header in scan_batches(memoryview(segment.log))]
    return RemoteLogSegmentMetadata(
        segment_id=segment_id,
        offsets=offsets,
        max_timestamp_ms=max(header.max_timestamp_ms for header in headers),
        segment_size_bytes=size_bytes,
        segment_leader_epochs=lineage.within(offsets),
        state=SegmentState.COPY_SEGMENT_STARTED,
        writer=writer,
        event_timestamp_ms=written_ms,
        layout=planned.layout,
        objects=planned.objects,
    )


def store_segment(
    storage: RemoteStorageManager,
    started: RemoteLogSegmentMetadata,
    segment: BuiltSegment,
    *,
    lineage: Lineage,
    aborted: Sequence[AbortedTransaction] = (),
) -> RemoteLogSegmentMetadata:
    """Copy a planned segment; return its metadata. `lineage` may begin before the segment."""
    data = LogSegmentData(
        offsets=started.offsets,
        log=BytesSource(content=segment.log),
        companions=_companions(segment, lineage, aborted),
    )
    return _stored(started, storage.copy_log_segment_data(started, data, _NoBounds()))


def stream_segment(
    storage: RemoteStorageManager,
    started: RemoteLogSegmentMetadata,
    segment: BuiltSegment,
    *,
    ledgers: Sequence[int],
    lineage: Lineage,
    aborted: Sequence[AbortedTransaction] = (),
) -> RemoteLogSegmentMetadata:
    """Stream a planned segment batch by batch. The ledgers begin at these offsets."""
    planned = PlannedObjects(layout=started.layout, objects=started.objects)
    writer = storage.open_segment_writer(started.segment_id, planned, _NoBounds())
    log = memoryview(segment.log)
    for position, header in scan_batches(log):
        if header.base_offset in ledgers:
            writer.begin_ledger(header.base_offset, 0)
        writer.append(log[position : position + header.length_bytes])
    return _stored(started, writer.seal(started, _companions(segment, lineage, aborted)))


def _companions(
    segment: BuiltSegment, lineage: Lineage, aborted: Sequence[AbortedTransaction]
) -> SegmentCompanions:
    return SegmentCompanions(
        offset_index=segment.offset_index,
        time_index=segment.time_index,
        transaction_index=segment.transaction_index or None,
        producer_snapshot=None,
        lineage=lineage,
        aborted_transactions=tuple(aborted),
    )


def _stored(started: RemoteLogSegmentMetadata, copied: CopiedSegment) -> RemoteLogSegmentMetadata:
    return replace(
        started,
        state=SegmentState.COPY_SEGMENT_FINISHED,
        objects=copied.objects,
        custom_metadata=copied.custom_metadata,
    )
