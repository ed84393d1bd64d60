"""Applies Kafka's retention rules to the local log and to the whole log. Pure.

By time: a segment expires when its newest record is older than the limit. By size: the oldest
segment expires while the rest is at least as large as the limit. Source: UnifiedLog's
deleteRetentionMsBreachedSegments and deleteRetentionSizeBreachedSegments.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from rlm.policy.view import PartitionView
from rlmm.events.policy import PolicyState
from rsm.segment.coverage import StoredRange
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """Represents a part of the log that expires as a whole: a stored or a local segment."""

    offsets: OffsetRange
    size_bytes: int
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Represents a retention in time and size; -1 is unlimited."""

    retention_ms: int
    retention_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """Represents a piece that exceeds a limit, with the compared values."""

    piece: LogPiece
    rule: str
    limit: int
    measured: int

    def __str__(self) -> str:
        return f"{self.rule}={self.limit} measured={self.measured}"


def breaches(
    pieces: Sequence[LogPiece], limits: Limits, *, total_bytes: int, wall_ms: int
) -> tuple[Breach, ...]:
    """Return the oldest pieces over a limit, ascending; stops at the first within the limits."""
    found = []
    left_bytes = total_bytes
    for piece in pieces:
        age_ms = wall_ms - piece.max_timestamp_ms
        if 0 <= limits.retention_ms < age_ms:
            found.append(_breach(piece, "retention.ms", limits.retention_ms, age_ms))
        elif 0 <= limits.retention_bytes <= left_bytes - piece.size_bytes:
            found.append(_breach(piece, "retention.bytes", limits.retention_bytes, left_bytes))
        else:
            break
        left_bytes -= piece.size_bytes
    return tuple(found)


def log_pieces(view: PartitionView) -> tuple[LogPiece, ...]:
    """Return the log from its start: stored segments, then rolled local ones that are not stored.

    Counts each byte at most once: omits a stored segment that earlier ones cover. A partly stored
    local segment counts with its age, but with 0 bytes.
    """
    log_start_offset = view.state.log_start_offset or 0
    pieces = stored_pieces(view.stored, from_offset=log_start_offset)
    end_offset = pieces[-1].offsets.end_offset if pieces else log_start_offset
    pieces.extend(
        LogPiece(
            offsets=local.offsets,
            size_bytes=local.size_bytes if local.offsets.start_offset >= end_offset else 0,
            max_timestamp_ms=local.max_timestamp_ms,
        )
        for local in view.local.rolled
        if local.offsets.end_offset > end_offset
    )
    return tuple(pieces)


def stored_pieces(ranges: Iterable[StoredRange], *, from_offset: int) -> list[LogPiece]:
    """Return the stored segments that reach above an offset, as `log_pieces` counts them."""
    stored = _ascending_ends(ranges, from_offset=from_offset)
    return [
        LogPiece(
            offsets=each.offsets,
            size_bytes=size_bytes,
            max_timestamp_ms=each.metadata.max_timestamp_ms,
        )
        for each, size_bytes in zip(stored, _least_bytes(stored), strict=True)
    ]


def _ascending_ends(stored: Iterable[StoredRange], *, from_offset: int) -> list[StoredRange]:
    """Return each stored segment that ends above `from_offset` and above all earlier segments."""
    kept: list[StoredRange] = []
    end_offset = from_offset
    for each in stored:
        if each.offsets.end_offset > end_offset:
            kept.append(each)
            end_offset = each.offsets.end_offset
    return kept


def _least_bytes(stored: Sequence[StoredRange]) -> list[int]:
    """Return the least number of bytes that each stored segment adds to the earlier ones.

    The size of an overlap is unknown, and so is the size of the readable part of a segment that an
    election cut off. If retention counted such bytes twice, records would expire before the log
    reaches its size limit. So the sizes of the segments after a segment never add up to more than
    the size of the log above that segment.
    """
    whole = [_whole_bytes(each) for each in stored]
    below = [0, *accumulate(each.metadata.segment_size_bytes for each in stored)]
    starts = [each.offsets.start_offset for each in stored]
    ends = [each.offsets.end_offset for each in stored]
    left = [0] * (len(stored) + 1)  # Each is the least size above the previous segment.
    for index in reversed(range(len(stored))):
        overlapped = bisect_right(ends, starts[index])
        added = max(0, whole[index] - (below[index] - below[overlapped]))
        left[index] = added + left[index + 1]
        apart = bisect_left(starts, ends[index - 1]) if index else len(stored)
        if apart < len(stored):
            left[index] = max(left[index], whole[apart] + left[apart + 1])
    return [left[index] - left[index + 1] for index in range(len(stored))]


def _whole_bytes(stored: StoredRange) -> int:
    """Return the size of a segment; 0 if an election cut off a part of unknown size."""
    is_whole = stored.offsets.end_offset == stored.metadata.offsets.end_offset
    return stored.metadata.segment_size_bytes if is_whole else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryCut:
    """Represents the new log start and its reason.

    `waiting_count` is the number of pieces over a limit that wait for a later cycle.
    """

    offset: int
    reason: str
    waiting_count: int = 0


def expiry_cut(view: PartitionView) -> ExpiryCut | None:
    """Return how far total retention moves the log start; None if not at all.

    The deletion of a disabled topic's remote data also moves it, to the local start. The result is
    never above the high watermark, and never above the local start while the local log must not be
    trimmed.
    """
    if not view.is_owned or view.is_diverged or view.conflict_offset is not None:
        return None
    cut = _cut_of_removal(view) or _cut_of_retention(view)
    if cut is None:
        return None
    ceiling = view.offsets.high_watermark
    if view.policy.state is not PolicyState.ACTIVE or view.untierable is not None:
        ceiling = min(ceiling, view.local_start_offset)
    offset = min(cut.offset, ceiling)
    current = view.state.log_start_offset
    if current is not None and offset <= current:
        return None
    return replace(cut, offset=offset)


def may_be_past_retention(view: PartitionView) -> bool:
    """Return whether all stored and rolled segments are past the retention in time.

    Then the records of the active segment may be past it, too. Returns False if the active segment
    is empty, or if retention does not apply now.
    """
    log_start = view.state.log_start_offset
    if view.policy.retention_ms < 0 or log_start is None or not view.local.active_size_bytes:
        return False
    if not view.is_owned or view.policy.state is not PolicyState.ACTIVE:
        return False
    left = max(log_start, view.local_start_offset) < view.copy_end_offset
    return left and all(
        view.moment.retention_ms - piece.max_timestamp_ms > view.policy.retention_ms
        for piece in log_pieces(view)
    )


def _cut_of_removal(view: PartitionView) -> ExpiryCut | None:
    if view.policy.state is not PolicyState.DISABLED or not view.policy.delete_remote:
        return None
    return ExpiryCut(offset=view.local_start_offset, reason="tiering disabled, remote data deleted")


def _cut_of_retention(view: PartitionView) -> ExpiryCut | None:
    """Return the cut above the pieces that one cycle may expire: a share of all, at least one.

    The share leaves time to notice a wrong retention or clock before all records are deleted.
    """
    pieces = log_pieces(view)
    found = breaches(
        pieces,
        Limits(retention_ms=view.policy.retention_ms, retention_bytes=view.policy.retention_bytes),
        total_bytes=sum(piece.size_bytes for piece in pieces) + view.active_unstored_bytes,
        wall_ms=view.moment.retention_ms,
    )
    share_count = max(1, len(pieces) * view.limits.expiry_max_percent // 100)
    if view.is_past_retention and len(found) == len(pieces) <= share_count:
        return ExpiryCut(
            offset=view.copy_end_offset,
            reason=f"retention.ms={view.policy.retention_ms} no record is younger",
        )
    if not found:
        return None
    share = found[:share_count]
    return ExpiryCut(
        offset=share[-1].piece.offsets.end_offset,
        reason=str(share[-1]),
        waiting_count=len(found) - len(share),
    )


def _breach(piece: LogPiece, rule: str, limit: int, measured: int) -> Breach:
    return Breach(piece=piece, rule=rule, limit=limit, measured=measured)
