"""Reports the role, the lag and the blocks of a hosted partition, from the view of a cycle. Pure.

Producers set timestamps themselves (`message.timestamp.type=CreateTime`). If a producer's clock is
ahead, segments with its records outlive their retention, as in Kafka. Retention does not correct
such timestamps; the report shows them.
"""

from __future__ import annotations

from rlm.policy.anomalies import open_anomalies
from rlm.policy.blocked import Blocked
from rlm.policy.candidates import (
    copy_blocked,
    lag,
    not_stored,
    offload_end_offset,
    storable_end_offset,
)
from rlm.policy.retention import log_pieces
from rlm.policy.trim_gate import TrimDecision
from rlm.policy.view import AttemptFailure, PartitionView
from rlm.status.document import FOLLOWER, LEADER, FutureTimestamps, PartitionReport, StreamReport
from rsm.segment.coverage import log_bytes
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState

# Since Kafka 4.0, brokers accept timestamps up to this far ahead (the default of
# message.timestamp.after.max.ms).
_SKEW_MS = 3_600_000


def leader_report(
    view: PartitionView,
    decision: TrimDecision,
    expiry_blocked: Blocked | None = None,
    repair_failure: AttemptFailure | None = None,
    stream: StreamReport | None = None,
) -> PartitionReport:
    """Report a led partition from the view on which the cycle decided."""
    behind = lag(view)
    remote_bytes = log_bytes(view.stored)
    finished = [
        record.metadata
        for record in view.segments
        if record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
    ]
    return PartitionReport(
        topic_id_partition=view.topic_id_partition,
        role=LEADER,
        leader_epoch=view.writer.leader_epoch,
        is_claimed=view.is_owned,
        policy_state=view.policy.state.name,
        lag_segments=behind.segments,
        lag_bytes=behind.bytes,
        oldest_unstored_age_ms=_oldest_unstored_age_ms(view),
        rolled_end_offset=storable_end_offset(view),
        stored_end_offset=view.covered_end_offset,
        offload_offset=-1
        if view.state.offload_requested_offset is None
        else view.state.offload_requested_offset,
        offload_end_offset=offload_end_offset(view),
        remote_segments=len(finished),
        remote_bytes=remote_bytes,
        remote_overlap_bytes=sum(each.segment_size_bytes for each in finished) - remote_bytes,
        copy_blocked=copy_blocked(view),
        trim_blocked=decision.blocked,
        expiry_blocked=expiry_blocked,
        is_copying=bool(view.in_flight),
        stream=stream,
        is_diverged=view.is_diverged,
        has_external_start=view.has_external_start,
        future_timestamps=future_timestamps(view),
        anomalies=open_anomalies(view.state, finished),
        repair_failure=repair_failure,
        problem=_problem(view),
    )


def _oldest_unstored_age_ms(view: PartitionView) -> int | None:
    """Return the time since the broker rolled the oldest unstored segment, by the manager's clock.

    Returns None if all rolled segments are stored.
    """
    waiting = not_stored(view)
    return max(0, view.moment.wall_ms - waiting[0].rolled_ms) if waiting else None


def future_timestamps(view: PartitionView) -> FutureTimestamps | None:
    """Return the segments with timestamps over an hour ahead of both clocks of the view, if any."""
    now_ms = max(view.moment.wall_ms, view.moment.broker_ms)
    ahead = [
        piece.max_timestamp_ms
        for piece in log_pieces(view)
        if piece.max_timestamp_ms > now_ms + _SKEW_MS
    ]
    if not ahead:
        return None
    return FutureTimestamps(segment_count=len(ahead), max_timestamp_ms=max(ahead))


def _problem(view: PartitionView) -> str:
    if not view.is_owned:
        return "another process owns the partition: its claim is newer"
    if view.newer is not None:
        return (
            "the metadata contains a record that needs a newer version of rlm: "
            "the manager copies, trims and deletes nothing"
        )
    return ""


def waiting_report(
    tip: TopicIdPartition, leader_epoch: int, *, is_claimed: bool, problem: str
) -> PartitionReport:
    """Report a led partition that this cycle could not evaluate."""
    return PartitionReport(
        topic_id_partition=tip,
        role=LEADER,
        leader_epoch=leader_epoch,
        is_claimed=is_claimed,
        problem=problem,
    )


def follower_report(tip: TopicIdPartition) -> PartitionReport:
    """Report a partition that another broker leads. The manager also follows its metadata."""
    return PartitionReport(topic_id_partition=tip, role=FOLLOWER, leader_epoch=-1, is_claimed=False)
