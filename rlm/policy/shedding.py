"""Selects the oldest unstored data to shed, if a topic's outage policy allows it. Pure.

**Data loss:** no tier contains shed records. `rlm` sheds only while the store accepts nothing, and
only until the disk is below its threshold. A shed ends at the base of a segment, at or below the
last stable offset. Like the trim gate, it keeps the newest rolled segment, and segments below the
minimum age. It also keeps records that are stored only in damaged segments: the broker's copy
repairs those segments.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlm.facts.local_log import RolledSegment
from rlm.policy.anomalies import blocked_by_anomalies
from rlm.policy.gaps import with_gaps
from rlm.policy.trim_gate import segment_blocked, trim_forbidden
from rlm.policy.view import PartitionView
from rlmm.events.pause import PausableTask
from rlmm.events.policy import OutagePolicy
from rlmm.state.gaps import GapReason, RecordedGap
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange, missing


@dataclass(frozen=True, slots=True, kw_only=True)
class SheddableRange:
    """Represents the segments of a partition that may be shed, oldest first; some may be stored."""

    topic_id_partition: TopicIdPartition
    segments: tuple[RolledSegment, ...]


def sheddable(view: PartitionView) -> SheddableRange | None:
    """Return the segments that may be shed; None if there are none.

    Shedding requires an outage, and a policy that allows it. A segment that is corrupt or cannot be
    stored at all is not an outage: later segments stay until an operator decides. Paused copies are
    not an outage, either.
    """
    sheds = view.limits.can_shed and view.policy.outage_policy is OutagePolicy.SHED_OLDEST
    failure = view.copy_failure
    is_of_segment = failure is not None and (failure.is_corrupt or failure.is_final)
    is_paused = PausableTask.COPY in view.paused
    if not sheds or not view.has_store_outage or is_of_segment or is_paused:
        return None
    if trim_forbidden(view) is not None:
        return None
    found = []
    for segment in view.local.rolled:
        if segment.offsets.end_offset <= view.local_start_offset:
            continue
        if not _may_shed(view, segment):
            break
        found.append(segment)
    if not found or found[-1].offsets.end_offset <= view.covered_end_offset:
        return None
    return SheddableRange(topic_id_partition=view.topic_id_partition, segments=tuple(found))


def released_but_there_bytes(view: PartitionView) -> int:
    """Return the size of segments below the local start that the broker has not yet removed."""
    return sum(
        segment.size_bytes
        for segment in view.local.rolled
        if segment.offsets.end_offset <= view.local_start_offset
    )


def choose_shed(
    candidates: Iterable[SheddableRange], excess_bytes: int
) -> Mapping[TopicIdPartition, int]:
    """Return the offset below which to shed, by partition. Sheds the oldest data first."""
    found = tuple(candidates)
    heap = [(each.segments[0].max_timestamp_ms, number, 0) for number, each in enumerate(found)]
    heapq.heapify(heap)
    offsets: dict[TopicIdPartition, int] = {}
    while heap and excess_bytes > 0:
        _, number, index = heapq.heappop(heap)
        each = found[number]
        segment = each.segments[index]
        offsets[each.topic_id_partition] = segment.offsets.end_offset
        excess_bytes -= segment.size_bytes
        if index + 1 < len(each.segments):
            following = each.segments[index + 1].max_timestamp_ms
            heapq.heappush(heap, (following, number, index + 1))
    return offsets


def gaps_of_shed(view: PartitionView, offset: int) -> tuple[RecordedGap, ...] | None:
    """Return all gaps of the partition after a shed below `offset`; None if no gap is new."""
    gone = OffsetRange(start_offset=view.local_start_offset, end_offset=offset)
    lost = missing((part.offsets for part in view.stored), gone)
    return with_gaps(view.state.gaps, lost, reason=GapReason.SHED, now_ms=view.moment.wall_ms)


def _may_shed(view: PartitionView, segment: RolledSegment) -> bool:
    if segment.offsets.end_offset <= view.covered_end_offset:
        return segment_blocked(view, segment) is None
    too_young = view.moment.wall_ms - segment.max_timestamp_ms < view.limits.local_trim_min_age_ms
    return (
        segment is not view.local.rolled[-1]
        and segment.offsets.end_offset <= view.copy_end_offset
        and not too_young
        and blocked_by_anomalies(view, segment.offsets.end_offset) is None
    )
