"""Decides what may be trimmed. Pure.

Every trim of stored or expired records passes this gate. Shedding applies some of its rules
(rlm/policy/shedding.py). A segment is trimmed only if all of these are true:

- finished segments in the log's own lineage store it, and all offsets from the local start to it;
- the broker's copy is not the only undamaged one, as far as damage is known;
- it ends at or below the high watermark, and it is not the newest rolled segment;
- it is older than the minimum age: a broker recognizes a retried batch only while the producer's
  state is in the local log;
- it exceeds the local retention, and is at least the margin away from the stored end;
- it has been stored for the deletion lag (PIP-17);
- every live gateway has applied the topic's policy and the records of the stored segments.

A trim ends at a segment's base offset. One exception: records below the log start are not readable,
so expired data is trimmed up to the log start, even within a segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlm.facts.local_log import RolledSegment
from rlm.policy.anomalies import blocked_by_anomalies
from rlm.policy.blocked import Blocked, blocked_by_log
from rlm.policy.gaps import gaps_to_record
from rlm.policy.peers.gateways import gateway_behind
from rlm.policy.retention import Breach, Limits, LogPiece, breaches
from rlm.policy.view import PartitionView
from rlmm.events.pause import PausableTask
from rlmm.events.policy import AS_MANAGERS_SETTING, PolicyState
from rlmm.spi import SegmentRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimDecision:
    """Represents the new local start or None, its rule, and what blocks the next segment."""

    offset: int | None = None
    rule: str = ""
    blocked: Blocked | None = None


def decide_trim(view: PartitionView) -> TrimDecision:
    """Return how far the local log may be trimmed now, and what blocks the rest."""
    over_retention = over_local_retention(view)
    expired_to = expired_end(view)
    if not over_retention and expired_to is None:
        return TrimDecision()
    if (blocked := trim_forbidden(view)) is not None:
        return TrimDecision(blocked=blocked)
    offset, rule, blocked = _stored_to(view, over_retention)
    if expired_to is not None and expired_to > (offset or 0):
        offset, rule = expired_to, f"below log start {view.state.log_start_offset}"
    return TrimDecision(offset=offset, rule=rule, blocked=blocked)


def over_local_retention(view: PartitionView) -> tuple[tuple[RolledSegment, Breach], ...]:
    """Return the oldest rolled segments that exceed local retention, each with the breach."""
    segments = tuple(s for s in view.local.rolled if s.offsets.end_offset > view.local_start_offset)
    policy = view.policy
    found = breaches(
        [
            LogPiece(
                offsets=s.offsets, size_bytes=s.size_bytes, max_timestamp_ms=s.max_timestamp_ms
            )
            for s in segments
        ],
        Limits(
            retention_ms=policy.effective_local_retention_ms,
            retention_bytes=policy.effective_local_retention_bytes,
        ),
        total_bytes=sum(s.size_bytes for s in segments) + view.local.active_size_bytes,
        wall_ms=view.moment.retention_ms,
    )
    return tuple(zip(segments, found, strict=False))


def expired_end(view: PartitionView) -> int | None:
    """Return the end of local data below the log start; None if there is none."""
    log_start = view.state.log_start_offset
    if log_start is None or log_start <= view.local_start_offset:
        return None
    return min(log_start, view.offsets.high_watermark)


def trim_forbidden(
    view: PartitionView,
) -> Blocked | None:
    """Return what blocks every trim of this partition; None if nothing does."""
    if view.policy.state is not PolicyState.ACTIVE:
        return Blocked(reason="policy_not_active", values={"state": view.policy.state.name})
    if not view.is_owned:
        return Blocked(reason="not_owner")
    if view.state.log_start_offset is None:
        # The manager must record the broker's log start before a trim moves that start.
        return Blocked(reason="log_start_not_recorded")
    if PausableTask.TRIM in view.paused:
        return Blocked(reason="paused")
    if view.newer is not None:
        values = {
            "needs_fold_version": view.newer.needs_fold_version,
            "metadata_partition": view.newer.position.partition,
            "metadata_offset": view.newer.position.offset,
        }
        return Blocked(reason="newer_record", values=values)
    if (blocked := blocked_by_log(view)) is not None:
        return blocked
    return _blocked_by_losses(view)


def _blocked_by_losses(view: PartitionView) -> Blocked | None:
    """Return the loss that blocks trims; None if all losses are accepted or recorded."""
    if view.is_diverged:
        return Blocked(reason="diverged", values=_diverged_values(view))
    if gaps_to_record(view) is not None:
        # After a trim, nothing would show that records were deleted before it.
        values = {"local_start_offset": view.local_start_offset}
        return Blocked(reason="gap_not_recorded", values=values)
    return None


def _diverged_values(view: PartitionView) -> Mapping[str, int | str]:
    cut = view.cut_off
    if cut is None:
        return {"high_watermark": view.offsets.high_watermark}
    return {
        "cut_off_from_offset": cut.start_offset,
        "cut_off_to_offset": cut.end_offset,
        "leader_epoch": cut.leader_epoch,
    }


def _stored_to(
    view: PartitionView, over_retention: tuple[tuple[RolledSegment, Breach], ...]
) -> tuple[int | None, str, Blocked | None]:
    """Return the trim offset for segments over local retention, its rule, and the next block."""
    offset: int | None = None
    rule = ""
    for segment, breach in over_retention:
        blocked = segment_blocked(view, segment)
        if blocked is not None:
            return offset, rule, blocked
        offset = segment.offsets.end_offset
        rule = f"local.{breach} stored_end={view.covered_end_offset}"
    return offset, rule, None


def segment_blocked(view: PartitionView, segment: RolledSegment) -> Blocked | None:
    """Return what blocks the trim of one segment, apart from retention; None if nothing does."""
    return (
        _blocked(view, segment)
        or _blocked_for_lag(view, segment)
        or _blocked_for_gateway(view, segment)
    )


def _blocked(view: PartitionView, segment: RolledSegment) -> Blocked | None:
    end_offset = segment.offsets.end_offset
    covered = view.covered_end_offset
    if end_offset > covered:
        values = {"segment_end_offset": end_offset, "stored_end_offset": covered}
        return Blocked(reason="not_stored", values=values)
    if (blocked := blocked_by_anomalies(view, end_offset)) is not None:
        return blocked
    if end_offset > view.offsets.high_watermark:
        values = {"high_watermark": view.offsets.high_watermark}
        return Blocked(reason="above_high_watermark", values=values)
    if segment is view.local.rolled[-1]:
        return Blocked(
            reason="newest_rolled_segment", values={"base_offset": segment.offsets.start_offset}
        )
    kept_bytes = sum(
        s.size_bytes
        for s in view.local.rolled
        if s.offsets.start_offset >= end_offset and s.offsets.end_offset <= covered
    )
    if kept_bytes < view.limits.local_trim_margin_bytes:
        values = {"kept_bytes": kept_bytes, "margin_bytes": view.limits.local_trim_margin_bytes}
        return Blocked(reason="within_margin", values=values)
    age_ms = view.moment.wall_ms - segment.max_timestamp_ms
    if age_ms < view.limits.local_trim_min_age_ms:
        values = {"age_ms": age_ms, "min_age_ms": view.limits.local_trim_min_age_ms}
        return Blocked(reason="younger_than_min_age", values=values)
    return None


def _blocked_for_lag(view: PartitionView, segment: RolledSegment) -> Blocked | None:
    """Return the deletion lag if it has not passed, by the brokers' clock; else None."""
    lag_ms = view.policy.local_deletion_lag_ms
    if lag_ms == AS_MANAGERS_SETTING:
        lag_ms = view.limits.local_trim_deletion_lag_ms
    for record in _copies_of(view, segment) if lag_ms else ():
        stored_for_ms = view.moment.broker_ms - record.changed_ms
        if stored_for_ms < lag_ms:
            values = {"stored_for_ms": stored_for_ms, "deletion_lag_ms": lag_ms}
            return Blocked(reason="within_deletion_lag", values=values)
    return None


def _blocked_for_gateway(view: PartitionView, segment: RolledSegment) -> Blocked | None:
    """Return a live gateway that has not applied the policy or the records of the segment's copies.

    Without the policy, a gateway treats the topic as not tiered.
    """
    if not view.gateways:
        return None
    copies = _copies_of(view, segment)
    for position in (view.policy_position, *(record.changed_at for record in copies)):
        behind = gateway_behind(view.gateways, position)
        if behind is not None:
            return Blocked(reason="gateway_behind", values=behind)
    return None


def _copies_of(view: PartitionView, segment: RolledSegment) -> tuple[SegmentRecord, ...]:
    """Return the stored segments that overlap a local segment at or above the local start."""
    stored = {
        part.metadata.segment_id
        for part in view.stored
        if part.offsets.start_offset < segment.offsets.end_offset
        and part.offsets.end_offset > max(segment.offsets.start_offset, view.local_start_offset)
    }
    return tuple(record for record in view.segments if record.metadata.segment_id in stored)
