"""Decides when the open segment of a stream ends. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import inf

from rlm.policy.stream.permit import StreamPermit
from rsm.segment.batches.batch import MAX_BATCH_BYTES
from rsm.segment.offload_settings import OffloadSettings
from rsm.segment.ranges import OffsetRange

# Positions and relative offsets in an offset index have 31 bits. The last part of a segment may
# exceed a limit by _GREATEST_PART_BYTES.
_GREATEST_PART_BYTES = 2 * MAX_BATCH_BYTES
_GREATEST_SEGMENT_BYTES = (1 << 31) - _GREATEST_PART_BYTES
GREATEST_OFFSET_COUNT = 1 << 30


class EndReason(Enum):
    """Represents why a stream's segment ends."""

    SIZE = "size"
    TIME = "time"
    OFFSETS = "offsets"
    REQUESTED = "requested"
    STORED_ABOVE = "stored above"
    OTHERS_WAIT = "others wait"
    FORBIDDEN = "forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamProgress:
    """Represents what a stream's open segment contains so far.

    `open_ms` is the time since the segment was assigned, `waited_ms` the time since its oldest
    record became known. `is_caught_up`: it contains all records that were committed at the last
    check.
    """

    offsets: OffsetRange
    size_bytes: int
    open_ms: int
    waited_ms: int
    is_caught_up: bool


def greatest_bytes(limits: OffloadSettings) -> int:
    """Return the greatest size of a segment: one batch may exceed the limit."""
    return limits.segment_max_bytes + MAX_BATCH_BYTES


def end_because(
    progress: StreamProgress,
    limits: OffloadSettings,
    permit: StreamPermit | None,
    *,
    others_wait: bool,
    history_end_offset: int = 0,
    history_longest_ms: float = inf,
) -> EndReason | None:
    """Return why the segment ends now; None if it continues.

    `others_wait`: a partition waits for this stream's slot (`gives_way`). If `permit` is None, the
    segment ends with the records that it contains. A segment that is caught up ends when its oldest
    record has waited for the rollover time. A segment that never catches up ends one rollover time
    after it was assigned. History, the records from before the stream, has already waited long, so
    a segment of history ends by size. If the store is slow, such a segment ends after
    `history_longest_ms`, but not before the rollover time: it must finish before its deadline.
    """
    if permit is None:
        return EndReason.FORBIDDEN
    if progress.size_bytes >= min(limits.segment_max_bytes, _GREATEST_SEGMENT_BYTES):
        return EndReason.SIZE
    rollover_ms, end_offset = limits.segment_rollover_ms, progress.offsets.end_offset
    is_history = end_offset < history_end_offset
    if progress.open_ms >= (max(rollover_ms, history_longest_ms) if is_history else rollover_ms):
        return EndReason.TIME
    if len(progress.offsets) >= GREATEST_OFFSET_COUNT:
        return EndReason.OFFSETS
    if permit.stored_from_offset is not None and end_offset >= permit.stored_from_offset:
        return EndReason.STORED_ABOVE
    if progress.offsets.start_offset < permit.requested_offset <= end_offset:
        return EndReason.REQUESTED
    if progress.is_caught_up and progress.waited_ms >= rollover_ms:
        return EndReason.TIME
    return EndReason.OTHERS_WAIT if progress.is_caught_up and others_wait else None


def gives_way(opened_at_ms: int, others_opened_at_ms: Iterable[int], waiting_count: int) -> bool:
    """Return whether a caught-up stream ends, so that a waiting partition gets its slot.

    The oldest caught-up streams end, one for each waiting partition. Times are monotonic.
    """
    return sum(each < opened_at_ms for each in others_opened_at_ms) < waiting_count
