"""Represents what a manager reports of a hosted partition: role, lag and what is blocked. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rlm.policy.anomalies import open_anomalies
from rlm.policy.blocked import Blocked
from rlm.policy.candidates import copy_blocked, lag, offload_end_offset
from rlm.policy.trim_gate import TrimDecision
from rlm.policy.view import CopyFailure, PartitionView
from rlm.status.future_timestamps import FutureTimestamps, future_timestamps
from rlmm.events.anomaly import Anomaly
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.metadata import SegmentState

LEADER = "leader"
FOLLOWER = "follower"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """Represents one hosted partition of a tiered topic at the last cycle; offsets -1 if unknown.

    `policy_state` is the topic's state in that cycle, so that a reader recognizes a report from
    before a change. `problem` is why a led partition could not be evaluated; its lag is then
    unknown. Rolled segments end at `rolled_end_offset`, and are stored without a gap up to
    `stored_end_offset`. `offload_offset` is the newest offload request; it is complete when all
    below `offload_end_offset` is stored. `anomalies` are the recorded damaged objects.
    `repair_failure` is why the last repair attempts failed.
    """

    topic_id_partition: TopicIdPartition
    role: str
    leader_epoch: int
    claimed: bool
    policy_state: str = ""
    lag_segments: int | None = None
    lag_bytes: int | None = None
    rolled_end_offset: int | None = None
    stored_end_offset: int | None = None
    offload_offset: int = -1
    offload_end_offset: int = 0
    remote_segments: int = 0
    remote_bytes: int = 0
    copy_blocked: Blocked | None = None
    trim_blocked: Blocked | None = None
    expiry_blocked: Blocked | None = None
    copying: bool = False
    diverged: bool = False
    external_start: bool = False
    future_timestamps: FutureTimestamps | None = None
    anomalies: tuple[Anomaly, ...] = ()
    repair_failure: CopyFailure | None = None
    problem: str = ""


def leader_report(
    view: PartitionView,
    decision: TrimDecision,
    expiry_blocked: Blocked | None = None,
    repair_failure: CopyFailure | None = None,
) -> PartitionReport:
    """Report a led partition from the view of the last decision."""
    behind = lag(view)
    finished = [
        record.metadata
        for record in view.segments
        if record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
    ]
    return PartitionReport(
        topic_id_partition=view.topic_id_partition,
        role=LEADER,
        leader_epoch=view.writer.leader_epoch,
        claimed=view.owned,
        policy_state=view.policy.state.name,
        lag_segments=behind.segments,
        lag_bytes=behind.bytes,
        rolled_end_offset=view.local.active_base_offset,
        stored_end_offset=view.covered_end_offset,
        offload_offset=-1
        if view.state.offload_requested_offset is None
        else view.state.offload_requested_offset,
        offload_end_offset=offload_end_offset(view),
        remote_segments=len(finished),
        remote_bytes=sum(metadata.segment_size_bytes for metadata in finished),
        copy_blocked=copy_blocked(view),
        trim_blocked=decision.blocked,
        expiry_blocked=expiry_blocked,
        copying=bool(view.in_flight),
        diverged=view.diverged,
        external_start=view.external_start,
        future_timestamps=future_timestamps(view),
        anomalies=open_anomalies(view.state, finished),
        repair_failure=repair_failure,
        problem=_problem(view),
    )


def _problem(view: PartitionView) -> str:
    if not view.owned:
        return "another process beside this broker owns the partition"
    if view.newer is not None:
        return (
            "the metadata has a record that needs a newer version of this program: "
            "nothing is copied, trimmed or deleted"
        )
    return ""


def waiting_report(
    tip: TopicIdPartition, leader_epoch: int, *, claimed: bool, problem: str
) -> PartitionReport:
    """Report a led partition that this cycle could not evaluate."""
    return PartitionReport(
        topic_id_partition=tip,
        role=LEADER,
        leader_epoch=leader_epoch,
        claimed=claimed,
        problem=problem,
    )


def follower_report(tip: TopicIdPartition) -> PartitionReport:
    """Report a partition that another broker leads; the manager follows its metadata too."""
    return PartitionReport(topic_id_partition=tip, role=FOLLOWER, leader_epoch=-1, claimed=False)


def report_as_json(report: PartitionReport) -> Mapping[str, object]:
    """Return a report as the manager's HTTP API shows it."""
    tip = report.topic_id_partition
    blocked, kept, waits = report.trim_blocked, report.expiry_blocked, report.copy_blocked
    future = report.future_timestamps
    return {
        "topic": tip.topic,
        "topic_id": id_to_text(tip.topic_id),
        "partition": tip.partition,
        "role": report.role,
        "leader_epoch": report.leader_epoch,
        "claimed": report.claimed,
        "policy_state": report.policy_state,
        "lag_segments": report.lag_segments,
        "lag_bytes": report.lag_bytes,
        "rolled_end_offset": report.rolled_end_offset,
        "stored_end_offset": report.stored_end_offset,
        "offload_offset": report.offload_offset,
        "offload_end_offset": report.offload_end_offset,
        "remote_segments": report.remote_segments,
        "remote_bytes": report.remote_bytes,
        "copy_blocked": None if waits is None else {"reason": waits.reason, **waits.values},
        "trim_blocked": None if blocked is None else {"reason": blocked.reason, **blocked.values},
        "expiry_blocked": None if kept is None else {"reason": kept.reason, **kept.values},
        "copying": report.copying,
        "diverged": report.diverged,
        "external_start": report.external_start,
        "future_timestamps": None if future is None else asdict(future),
        "repair_failure": None if report.repair_failure is None else asdict(report.repair_failure),
        "problem": report.problem,
    }
