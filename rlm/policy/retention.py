"""Kafka's retention rules, once, for the local log and for the whole log alike.

By time: a segment is expired when its newest record is older than the limit, strictly. By size: the
oldest segment goes while what would be left is still at least the limit. (UnifiedLog's
deleteRetentionMsBreachedSegments and deleteRetentionSizeBreachedSegments.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlm.policy.view import PartitionView
from rlmm.events.values import PolicyState
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """A stretch of the log that goes as a whole: a stored segment, or a local one not stored."""

    offsets: OffsetRange
    size_bytes: int
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A retention in time and size; -1 is unlimited."""

    retention_ms: int
    retention_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A piece over a limit: which one, and the values that decided."""

    piece: LogPiece
    rule: str
    limit: int
    measured: int

    def __str__(self) -> str:
        return f"{self.rule}={self.limit} measured={self.measured}"


def breaches(
    pieces: Sequence[LogPiece], limits: Limits, *, total_bytes: int, wall_ms: int
) -> tuple[Breach, ...]:
    """The oldest pieces that are over a limit, ascending; ends at the first that is not."""
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
    """The log from its start: stored segments, then rolled local ones that are not stored.

    Each byte is counted once at most: a stored segment inside what earlier ones cover is left out,
    and a local one that is stored in part has no bytes, but its own age.
    """
    pieces: list[LogPiece] = []
    end_offset = view.state.log_start_offset or 0
    for stored in view.stored:
        if stored.offsets.end_offset <= end_offset:
            continue
        metadata = stored.metadata
        pieces.append(
            LogPiece(
                offsets=stored.offsets,
                size_bytes=metadata.segment_size_bytes,
                max_timestamp_ms=metadata.max_timestamp_ms,
            )
        )
        end_offset = stored.offsets.end_offset
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryCut:
    """Where the log is to start from now on, and why.

    `waiting_count`: pieces over a limit that have to wait for a later cycle.
    """

    offset: int
    reason: str
    waiting_count: int = 0


def expiry_cut(view: PartitionView) -> ExpiryCut | None:
    """How far the log start has to move by the topic's total retention; None if not at all.

    Never above the high watermark, and never above the local start while the local log may not be
    trimmed.
    """
    if not view.owned or view.diverged or view.conflict_offset is not None:
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
    """Whether all that is rolled is past the retention in time, so that the rest may be, too."""
    log_start = view.state.log_start_offset
    if view.policy.retention_ms < 0 or log_start is None or not view.local.active_size_bytes:
        return False
    if not view.owned or view.policy.state is not PolicyState.ACTIVE:
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
    """Of all pieces of the log at most the share that one cycle may let go, but one at least.

    So a retention, or a clock, that is wrong by mistake is seen before all is gone.
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
