"""Finds local records that disabling a topic's tiering puts at risk. Pure.

**Data loss:** once the topic's own retention is restored, the broker may delete older records at
once, even if they are not stored. While a topic is tiered, the broker deletes nothing by itself.
Unstored rolled segments would never be stored, because copying ends. A segment with a recorded
anomaly does not count as stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from rlm.policy.anomalies import undamaged
from rlm.policy.candidates import Lag
from rlmm.state.partition_state import PartitionState
from rsm.segment.coverage import covered_end, stored_ranges
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange


class RiskReason(Enum):
    """Represents why records are at risk; the values are for users."""

    NOT_STORED = "rolled segments are not stored yet"
    NOT_KNOWN = "no manager reports the rolled segments"
    EXPIRED = "older than the retention to be restored, and not rolled"
    DAMAGED = "stored objects are damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalExtent:
    """Represents a partition's log on its leader, and what the restored retention keeps of it.

    `kept_from_offset` is the offset of the first record within the retention in time; the end
    offset if there is none. `is_size_limited`: the restored retention has a limit in bytes.
    """

    local_start_offset: int
    end_offset: int
    kept_from_offset: int
    is_size_limited: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsAtRisk:
    """Represents offsets that may be lost. `size_bytes` is None except for rolled segments."""

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange
    reason: RiskReason
    size_bytes: int | None = None

    def __str__(self) -> str:
        size = "" if self.size_bytes is None else f" ({self.size_bytes} bytes)"
        span = f"{self.offsets.start_offset}..{self.offsets.end_offset}"
        return f"partition {self.topic_id_partition.partition} {span}{size}: {self.reason.value}"


def records_at_risk(
    topic_id_partition: TopicIdPartition,
    *,
    state: PartitionState,
    segments: Iterable[RemoteLogSegmentMetadata],
    extent: LocalExtent,
    lag: Lag | None,
) -> RecordsAtRisk | None:
    """Return what may be lost if the topic's retention is restored now; None if nothing.

    `lag` is as reported by the partition's manager after it has read that copying ends; None if the
    manager reports none. Then all unstored records count, with one exception: if no manager
    ever owned the partition and the retention has no limit in bytes, only records past that
    retention count.
    """
    found = tuple(segments)
    start_offset = extent.local_start_offset
    stored_end_offset = covered_end(stored_ranges(state.lineage, found), start_offset)
    sound = stored_ranges(state.lineage, undamaged(state, found))
    sound_end_offset = covered_end(sound, start_offset)
    is_damaged = sound_end_offset < stored_end_offset
    end_offset = extent.end_offset
    size_bytes = None
    if lag is not None and lag.segments > 0:
        reason, size_bytes = RiskReason.NOT_STORED, lag.bytes
    elif lag is None and (state.owner is not None or extent.is_size_limited):
        reason = RiskReason.NOT_KNOWN
    else:
        reason, end_offset = RiskReason.EXPIRED, min(end_offset, extent.kept_from_offset)
        if is_damaged and extent.is_size_limited:  # The broker may delete any rolled segment.
            end_offset = max(end_offset, stored_end_offset)
    if sound_end_offset >= end_offset:
        return None
    if is_damaged and reason is RiskReason.EXPIRED:
        reason = RiskReason.DAMAGED
    return RecordsAtRisk(
        topic_id_partition=topic_id_partition,
        offsets=OffsetRange(start_offset=sound_end_offset, end_offset=end_offset),
        reason=reason,
        size_bytes=size_bytes,
    )
