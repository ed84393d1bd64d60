"""Represents what a process reports of itself and of its partitions, with its JSON. Pure.

A process makes a document, its HTTP API serves it, and another process reads it:

| document | served as | read by |
| --- | --- | --- |
| ReadinessReport | `GET /readyz` of every process | the supervisor |
| PartitionReport | rows of `GET /v1/partitions` | `rlm status`, `rlm offload` and others |
| OffsetExplanation (rlm.status.explanation) | `GET /v1/explanation` | `rlm explain` |
| RetentionPreview (rlm.status.retention_preview) | rows of `GET /v1/retention` | `rlm retention` |

A reader accepts documents of other versions: it ignores unknown fields, and a field that an earlier
version does not send has a default. A field of a wrong type or size raises CorruptError
(rlm.status.json_object).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rlm.policy.blocked import Blocked
from rlm.policy.view import CopyFailure
from rlm.status.json_object import JsonObject
from rlmm.state.anomalies import Anomaly
from rlmm.state.gaps import GapReason, RecordedGap
from rsm.segment.ids import TopicIdPartition, id_to_text

LEADER, FOLLOWER = "leader", "follower"

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessReport:
    """Represents whether a process does all of its work, and what an operator should check.

    `reasons` are why it is not ready. `warnings` do not change that.
    """

    is_ready: bool
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> Json:
        return {
            "ready": self.is_ready,
            "reasons": list(self.reasons),
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_json(cls, document: object) -> ReadinessReport:
        found = JsonObject(document)
        return cls(
            is_ready=found.flag("ready"),
            reasons=found.texts("reasons"),
            warnings=found.texts("warnings"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FutureTimestamps:
    """Represents the stored and rolled segments with timestamps in the future, and the latest."""

    segment_count: int
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """Represents one hosted partition of a tiered topic at the last cycle; offsets -1 if unknown.

    `policy_state` is the topic's state in that cycle, so that a reader recognizes a report from
    before a change. `problem` is why a led partition could not be evaluated; its lag is then
    unknown. Rolled segments end at `rolled_end_offset`, and are stored without a gap up to
    `stored_end_offset`. `offload_offset` is the newest offload request; it is complete when all
    below `offload_end_offset` is stored. Earlier managers do not report them: they are then None.
    `oldest_unstored_age_ms` is the time since the broker rolled the oldest segment that is not
    stored; None if all are, or from earlier managers.
    `anomalies` are the recorded damaged objects, which are not part of the JSON. `repair_failure`
    is why the last repair attempts failed.
    """

    topic_id_partition: TopicIdPartition
    role: str
    leader_epoch: int
    is_claimed: bool
    policy_state: str = ""
    lag_segments: int | None = None
    lag_bytes: int | None = None
    oldest_unstored_age_ms: int | None = None
    rolled_end_offset: int | None = None
    stored_end_offset: int | None = None
    offload_offset: int | None = -1
    offload_end_offset: int | None = 0
    remote_segments: int = 0
    remote_bytes: int = 0
    copy_blocked: Blocked | None = None
    trim_blocked: Blocked | None = None
    expiry_blocked: Blocked | None = None
    is_copying: bool = False
    is_diverged: bool = False
    has_external_start: bool = False
    future_timestamps: FutureTimestamps | None = None
    anomalies: tuple[Anomaly, ...] = ()
    repair_failure: CopyFailure | None = None
    problem: str = ""

    def to_json(self) -> Json:
        tip, future, repair = self.topic_id_partition, self.future_timestamps, self.repair_failure
        return {
            "topic": tip.topic,
            "topic_id": id_to_text(tip.topic_id),
            "partition": tip.partition,
            "role": self.role,
            "leader_epoch": self.leader_epoch,
            "claimed": self.is_claimed,
            "policy_state": self.policy_state,
            "lag_segments": self.lag_segments,
            "lag_bytes": self.lag_bytes,
            "oldest_unstored_age_ms": self.oldest_unstored_age_ms,
            "rolled_end_offset": self.rolled_end_offset,
            "stored_end_offset": self.stored_end_offset,
            "offload_offset": self.offload_offset,
            "offload_end_offset": self.offload_end_offset,
            "remote_segments": self.remote_segments,
            "remote_bytes": self.remote_bytes,
            "copy_blocked": blocked_to_json(self.copy_blocked),
            "trim_blocked": blocked_to_json(self.trim_blocked),
            "expiry_blocked": blocked_to_json(self.expiry_blocked),
            "copying": self.is_copying,
            "diverged": self.is_diverged,
            "external_start": self.has_external_start,
            "future_timestamps": None if future is None else asdict(future),
            "repair_failure": None if repair is None else _failure_to_json(repair),
            "problem": self.problem,
        }

    @classmethod
    def from_json(cls, found: JsonObject) -> PartitionReport:
        return cls(
            topic_id_partition=_partition_from(found),
            role=LEADER if found.text("role") == LEADER else FOLLOWER,
            leader_epoch=found.integer("leader_epoch"),
            is_claimed=found.flag("claimed"),
            policy_state=found.text("policy_state", ""),
            lag_segments=found.integer_or_none("lag_segments"),
            lag_bytes=found.integer_or_none("lag_bytes"),
            oldest_unstored_age_ms=found.integer_or_none("oldest_unstored_age_ms"),
            rolled_end_offset=found.integer_or_none("rolled_end_offset"),
            stored_end_offset=found.integer_or_none("stored_end_offset"),
            offload_offset=found.integer_or_none("offload_offset"),
            offload_end_offset=found.integer_or_none("offload_end_offset"),
            remote_segments=found.integer("remote_segments"),
            remote_bytes=found.integer("remote_bytes"),
            copy_blocked=blocked_from_json(found, "copy_blocked", earlier="copy_held"),
            trim_blocked=blocked_from_json(found, "trim_blocked", earlier="trim_held"),
            expiry_blocked=blocked_from_json(found, "expiry_blocked", earlier="expiry_held"),
            is_copying=found.flag("copying"),
            is_diverged=found.flag("diverged"),
            has_external_start=found.flag("external_start"),
            future_timestamps=_future_from(found.object_or_none("future_timestamps")),
            repair_failure=_failure_from(found.object_or_none("repair_failure")),
            problem=found.text("problem", ""),
        )


def blocked_to_json(blocked: Blocked | None) -> Json | None:
    """Return what blocks a copy, a trim or an expiry, with the compared values as fields."""
    return None if blocked is None else {"reason": blocked.reason, **blocked.values}


def blocked_from_json(found: JsonObject, name: str, *, earlier: str = "") -> Blocked | None:
    """Return the same from a field; None if nothing blocks."""
    blocked = found.object_or_none(name, earlier=earlier)
    if blocked is None:
        return None
    return Blocked(reason=blocked.text("reason"), values=blocked.values(without="reason"))


def gap_to_json(gap: RecordedGap) -> Json:
    """Return a gap as `rlm status --json` and `rlm explain --json` print it."""
    return {
        "start_offset": gap.offsets.start_offset,
        "end_offset": gap.offsets.end_offset,
        "reason": gap.reason.name.lower(),
        "recorded_ms": gap.recorded_ms,
    }


def gap_from_json(found: JsonObject) -> RecordedGap:
    """Return the same gap; CorruptError for a reason that only a newer version knows."""
    reasons = {reason.name.lower(): reason for reason in GapReason}
    name = found.text("reason")
    if name not in reasons:
        raise found.malformed("reason", f"one of {', '.join(reasons)}")
    return RecordedGap(
        offsets=found.offsets("start_offset", "end_offset"),
        reason=reasons[name],
        recorded_ms=found.integer("recorded_ms"),
    )


def anomaly_to_json(anomaly: Anomaly) -> Json:
    """Return an anomaly as `rlm status --json` and `rlm explain --json` print it."""
    return {
        "segment_id": id_to_text(anomaly.segment),
        "object": anomaly.object_key,
        "kind": anomaly.kind.label,
        "first_ms": anomaly.first_ms,
        "last_ms": anomaly.last_ms,
        "attempts": anomaly.attempts,
    }


def _partition_from(found: JsonObject) -> TopicIdPartition:
    partition = found.integer("partition")
    if partition < 0:
        raise found.malformed("partition", "a partition's number")
    return TopicIdPartition(
        topic_id=found.kafka_id("topic_id"), topic=found.text("topic"), partition=partition
    )


def _future_from(found: JsonObject | None) -> FutureTimestamps | None:
    if found is None:
        return None
    return FutureTimestamps(
        segment_count=found.integer("segment_count"),
        max_timestamp_ms=found.integer("max_timestamp_ms"),
    )


def _failure_to_json(failure: CopyFailure) -> Json:
    return {
        "error": failure.error,
        "cause": failure.cause,
        "corrupt": failure.is_corrupt,
        "attempts": failure.attempts,
        "final": failure.is_final,
    }


def _failure_from(found: JsonObject | None) -> CopyFailure | None:
    if found is None:
        return None
    return CopyFailure(
        error=found.text("error"),
        cause=found.text("cause"),
        is_corrupt=found.flag("corrupt"),
        attempts=found.integer("attempts"),
        is_final=found.flag("final"),
    )
