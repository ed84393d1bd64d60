"""Giving up the oldest data that is not stored, where a topic's outage policy says so.

Only while the store does not take it, and only as much as brings the disk below its threshold. What
goes obeys the rest of the trim gate's rules: it ends at a segment's base, below the last stable
offset, and is neither the newest rolled segment nor younger than the minimum age. What is
stored in damaged segments only is not given up: the broker's copy repairs it. Pure.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlm.policy.anomalies import blocked_by_anomalies
from rlm.policy.gaps import with_gaps
from rlm.policy.trim_gate import segment_blocked, trim_forbidden
from rlm.policy.view import PartitionView
from rlm.source.log_source import LocalSegment
from rlmm.events.values import GapReason, OutagePolicy, PausableTask, RecordedGap
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange, missing


@dataclass(frozen=True, slots=True, kw_only=True)
class SheddableRange:
    """What of a partition may be given up, oldest first; stored segments before it go with it."""

    topic_id_partition: TopicIdPartition
    segments: tuple[LocalSegment, ...]


def sheddable(view: PartitionView) -> SheddableRange | None:
    """None unless the topic's policy is to shed, the store takes nothing, and anything may go.

    That a segment is corrupt, or cannot be stored at all, is no outage: what is behind it stays
    until somebody decides. Nor is it one that somebody has paused copies.
    """
    sheds = view.policy.outage_policy is OutagePolicy.SHED_OLDEST
    failure = view.copy_failure
    is_of_segment = failure is not None and (failure.corrupt or failure.final)
    is_paused = PausableTask.COPY in view.paused
    if not sheds or not view.store_takes_nothing or is_of_segment or is_paused:
        return None
    if trim_forbidden(view) is not None:
        return None
    found = []
    for segment in view.local.rolled:
        if segment.offsets.end_offset <= view.local_start_offset:
            continue
        if not _may_go(view, segment):
            break
        found.append(segment)
    if not found or found[-1].offsets.end_offset <= view.covered_end_offset:
        return None
    return SheddableRange(topic_id_partition=view.topic_id_partition, segments=tuple(found))


def released_but_there_bytes(view: PartitionView) -> int:
    """Files below the local start, which the broker has yet to remove."""
    return sum(
        segment.size_bytes
        for segment in view.local.rolled
        if segment.offsets.end_offset <= view.local_start_offset
    )


def choose_shed(
    candidates: Iterable[SheddableRange], excess_bytes: int
) -> Mapping[TopicIdPartition, int]:
    """Up to where each partition is to go, the oldest data of all of them first."""
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
    """All gaps of the partition, if its local log begins at `offset`; None if that makes none."""
    gone = OffsetRange(start_offset=view.local_start_offset, end_offset=offset)
    lost = missing((part.offsets for part in view.stored), gone)
    return with_gaps(view.state.gaps, lost, reason=GapReason.SHED, now_ms=view.moment.wall_ms)


def _may_go(view: PartitionView, segment: LocalSegment) -> bool:
    if segment.offsets.end_offset <= view.covered_end_offset:
        return segment_blocked(view, segment) is None
    too_young = view.moment.wall_ms - segment.max_timestamp_ms < view.limits.local_trim_min_age_ms
    return (
        segment is not view.local.rolled[-1]
        and segment.offsets.end_offset <= view.copy_end_offset
        and not too_young
        and blocked_by_anomalies(view, segment.offsets.end_offset) is None
    )
