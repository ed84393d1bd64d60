"""Finds the offsets that are lost if an operator gives up a damaged segment. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from rlmm.state.partition_state import PartitionState
from rsm.segment.coverage import stored_ranges
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange, missing


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLoss:
    """Represents the readable offsets of one segment, and where else they are.

    `readable_in` are the other finished segments without an anomaly that contain some of the
    offsets. `lost` offsets are in none of those segments and in no recorded gap. If gaps cover all
    offsets outside of those segments, `lost` contains these offsets anyway. `on_broker` is the part
    of `lost` that the broker still has.
    """

    lost: tuple[OffsetRange, ...]
    readable_in: tuple[RemoteLogSegmentId, ...]
    on_broker: tuple[OffsetRange, ...]


def segment_loss(
    segment: UUID,
    state: PartitionState,
    segments: Sequence[RemoteLogSegmentMetadata],
    local_start_offset: int,
) -> SegmentLoss:
    """Return what is lost with a segment; nothing if no reader can reach its offsets."""
    stored = stored_ranges(state.lineage, segments)
    damaged = {segment, *(anomaly.segment for anomaly in state.anomalies)}
    sound = [part for part in stored if part.metadata.segment_id.id not in damaged]
    own = next((part.offsets for part in stored if part.metadata.segment_id.id == segment), None)
    if own is None:
        return SegmentLoss(lost=(), readable_in=(), on_broker=())
    start_offset = max(own.start_offset, state.first_readable_offset or 0)
    readable = replace(own, start_offset=min(start_offset, own.end_offset))
    found = [part.offsets for part in sound]
    gaps = [gap.offsets for gap in state.gaps]
    lost = missing(sorted((*found, *gaps)), readable) or missing(found, readable)
    return SegmentLoss(
        lost=lost,
        readable_in=tuple(
            part.metadata.segment_id for part in sound if part.offsets.overlaps(readable)
        ),
        on_broker=tuple(
            replace(each, start_offset=max(each.start_offset, local_start_offset))
            for each in lost
            if each.end_offset > local_start_offset
        ),
    )
