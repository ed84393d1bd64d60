"""Represents the documents in which a process reports about itself and its partitions. Pure.

One process makes a document and serves it as JSON on its HTTP API; another process reads it:

| document | served as | read by |
| --- | --- | --- |
| ReadinessReport (rlm.process.readiness) | `GET /readyz` of every process | the supervisor |
| PartitionReport | rows of `GET /v1/partitions` | `rlm status`, `rlm offload` and others |
| OffsetExplanation (rlm.status.explanation) | `GET /v1/explanation` | `rlm explain` |
| RetentionPreview (rlm.status.retention_preview) | rows of `GET /v1/retention` | `rlm retention` |

A reader accepts documents of other versions: it ignores unknown fields, and uses a default for a
field that an earlier version does not send. It raises CorruptError for a field of a wrong type or
size (rlm.status.json_object).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from rlm.policy.blocked import Blocked
from rlm.policy.view import AttemptFailure
from rlm.status.document_parts import BLOCKED, PARTITION, Json, blocked_from_json, blocked_to_json
from rlm.status.json_object import JsonObject
from rlmm.state.anomalies import Anomaly
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import TopicIdPartition, id_to_text

LEADER, FOLLOWER = "leader", "follower"

FUTURE_TIMESTAMPS = JsonShape(
    name="FutureTimestamps",
    meaning="Stored and rolled segments with timestamps over an hour in the future. Time-based "
    "retention keeps them longer.",
    fields={
        "segment_count": JsonField(JsonKind.COUNT, "Number of these segments."),
        "max_timestamp_ms": JsonField(JsonKind.TIME, "The latest timestamp in these segments."),
    },
)
ATTEMPT_FAILURE = JsonShape(
    name="AttemptFailure",
    meaning="Why the last attempts of one kind failed.",
    fields={
        "error": JsonField(JsonKind.TEXT, "The error of the last attempt."),
        "cause": JsonField(JsonKind.TEXT, "The same error without the identity of the segment."),
        "corrupt": JsonField(JsonKind.FLAG, "Whether bytes violate their format or checksum."),
        "attempts": JsonField(JsonKind.COUNT, "Number of attempts that failed."),
        "final": JsonField(
            JsonKind.FLAG,
            "Whether every later attempt would fail. If so, the manager makes no more attempts.",
        ),
    },
)
STREAM = JsonShape(
    name="Stream",
    meaning="How a partition is streamed. If no segment is open, the first four fields are null.",
    fields={
        "begin_offset": JsonField(
            JsonKind.OFFSET, "First offset of the open segment.", is_nullable=True
        ),
        "position_offset": JsonField(
            JsonKind.OFFSET,
            "Offset after the last of its records that were passed to the store.",
            is_nullable=True,
        ),
        "size_bytes": JsonField(JsonKind.BYTES, "Size of these records.", is_nullable=True),
        "age_ms": JsonField(
            JsonKind.DURATION, "Time since the segment was opened.", is_nullable=True
        ),
        "unstored_ms": JsonField(
            JsonKind.DURATION,
            "Time since the manager first saw the oldest committed record that is not stored; null "
            "if all are stored.",
            is_nullable=True,
        ),
        "rollover_ms": JsonField(
            JsonKind.DURATION, "Time after which an offload segment ends.", is_nullable=True
        ),
        "open_transaction_ms": JsonField(
            JsonKind.DURATION,
            "How long an open transaction has kept the last stable offset from moving; null if no "
            "transaction does. No record from that offset onward is stored. If the time exceeds "
            "the broker's `transaction.max.timeout.ms`, the transaction hangs.",
            is_nullable=True,
        ),
        "merge_waiting_segments": JsonField(
            JsonKind.COUNT,
            "Number of small stored segments that wait to be merged.",
            is_nullable=True,
        ),
        "merge_waiting_bytes": JsonField(
            JsonKind.BYTES, "Size of these segments.", is_nullable=True
        ),
        "merge_failure": JsonField(
            ATTEMPT_FAILURE,
            "Why merges of small streamed segments fail, or why they leave out an unreadable "
            "segment; null if they do neither.",
            is_nullable=True,
        ),
    },
)
PARTITION_REPORT = JsonShape(
    name="PartitionReport",
    meaning="One hosted partition of a tiered topic, at the last cycle of its manager.",
    fields={
        **PARTITION,
        "role": JsonField(
            JsonKind.TEXT, "`leader` if this manager's broker leads the partition, else `follower`."
        ),
        "leader_epoch": JsonField(JsonKind.COUNT, "The leader's epoch; -1 for a follower."),
        "claimed": JsonField(JsonKind.FLAG, "Whether this manager owns the partition's decisions."),
        "policy_state": JsonField(
            JsonKind.TEXT, "The topic's state in that cycle, such as `ACTIVE`; empty if unknown."
        ),
        "lag_segments": JsonField(
            JsonKind.COUNT, "Number of rolled segments that are not stored.", is_nullable=True
        ),
        "lag_bytes": JsonField(
            JsonKind.BYTES, "Size of the rolled segments that are not stored.", is_nullable=True
        ),
        "oldest_unstored_age_ms": JsonField(
            JsonKind.DURATION,
            "Time since the broker rolled the oldest segment that is not stored; null if all are "
            "stored.",
            is_nullable=True,
        ),
        "rolled_end_offset": JsonField(
            JsonKind.OFFSET,
            "Offset after the rolled segments; for a stream, after the committed records.",
            is_nullable=True,
        ),
        "stored_end_offset": JsonField(
            JsonKind.OFFSET,
            "Offset after the contiguously stored records.",
            is_nullable=True,
        ),
        "offload_offset": JsonField(
            JsonKind.OFFSET,
            "Offset of the newest offload request; -1 if there is none.",
            is_nullable=True,
        ),
        "offload_end_offset": JsonField(
            JsonKind.OFFSET,
            "The request is complete when all records below this offset are stored.",
            is_nullable=True,
        ),
        "remote_segments": JsonField(JsonKind.COUNT, "Number of stored segments."),
        "remote_bytes": JsonField(
            JsonKind.BYTES,
            "Size of the stored log. Records that two segments contain count once.",
        ),
        "remote_overlap_bytes": JsonField(
            JsonKind.BYTES,
            "Total size of the stored segments, minus `remote_bytes`: records also in another "
            "segment, records below the log start, and records that an election cut off.",
        ),
        "copy_blocked": JsonField(
            BLOCKED, "What blocks copies; null if nothing does.", is_nullable=True
        ),
        "trim_blocked": JsonField(
            BLOCKED, "What blocks trims; null if nothing does.", is_nullable=True
        ),
        "expiry_blocked": JsonField(
            BLOCKED, "What blocks expiry; null if nothing does.", is_nullable=True
        ),
        "copying": JsonField(JsonKind.FLAG, "Whether a segment is being copied."),
        "stream": JsonField(
            STREAM,
            "The partition's stream; null if the partition is not streamed.",
            is_nullable=True,
        ),
        "diverged": JsonField(
            JsonKind.FLAG, "Whether the broker's log no longer contains stored records."
        ),
        "external_start": JsonField(
            JsonKind.FLAG,
            "Whether the local log of the partition has an external start that nobody has "
            "accepted.",
        ),
        "future_timestamps": JsonField(
            FUTURE_TIMESTAMPS, "Segments with timestamps in the future.", is_nullable=True
        ),
        "repair_failure": JsonField(
            ATTEMPT_FAILURE,
            "Why repairs of damaged segments fail; null if none fails.",
            is_nullable=True,
        ),
        "problem": JsonField(
            JsonKind.TEXT,
            "Why the manager could not evaluate the partition; empty if it could.",
        ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FutureTimestamps:
    """Represents segments with timestamps over an hour in the future, and the latest timestamp."""

    segment_count: int
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReport:
    """Represents how a partition is streamed.

    The first four fields are None if no segment is open. `unstored_ms` is the time since the
    manager first saw the oldest unstored record; None if all are stored. `open_transaction_ms` is
    how long the last stable offset has stayed the same while below the high watermark; None if it
    is not below. `merge_waiting_segments` is the number of small segments that wait to be merged.
    `merge_failure` is why the last attempts to merge failed, or why merges leave out a segment.
    Earlier managers do not report `unstored_ms`, `rollover_ms` or the waiting segments.
    """

    begin_offset: int | None = None
    position_offset: int | None = None
    size_bytes: int | None = None
    age_ms: int | None = None
    unstored_ms: int | None = None
    rollover_ms: int | None = None
    open_transaction_ms: int | None = None
    merge_waiting_segments: int | None = None
    merge_waiting_bytes: int | None = None
    merge_failure: AttemptFailure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """Represents one hosted partition of a tiered topic at the last cycle.

    Offsets are None if unknown. `policy_state` is the topic's state in that cycle, so that a reader
    recognizes a report from before a change. `problem` is why the manager could not evaluate a led
    partition; its lag may then be None. Rolled segments end at `rolled_end_offset`, and are stored
    contiguously up to `stored_end_offset`. `offload_offset` is that of the newest offload request;
    -1 if there is none. The request is complete when all records below `offload_end_offset` are
    stored. `oldest_unstored_age_ms` is the time since the broker rolled the oldest segment that is
    not stored; None if all are stored. Earlier managers do not report these four offsets and the
    age; they are then None. `stream` is None unless the partition is streamed; the committed
    records of a stream count as rolled. `anomalies` are the recorded damaged objects, which are not
    part of the JSON. `repair_failure` is why the last repair attempts failed.
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
    remote_overlap_bytes: int = 0
    copy_blocked: Blocked | None = None
    trim_blocked: Blocked | None = None
    expiry_blocked: Blocked | None = None
    is_copying: bool = False
    stream: StreamReport | None = None
    is_diverged: bool = False
    has_external_start: bool = False
    future_timestamps: FutureTimestamps | None = None
    anomalies: tuple[Anomaly, ...] = ()
    repair_failure: AttemptFailure | None = None
    problem: str = ""

    def to_json(self) -> Json:
        tip, future = self.topic_id_partition, self.future_timestamps
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
            "remote_overlap_bytes": self.remote_overlap_bytes,
            "copy_blocked": blocked_to_json(self.copy_blocked),
            "trim_blocked": blocked_to_json(self.trim_blocked),
            "expiry_blocked": blocked_to_json(self.expiry_blocked),
            "copying": self.is_copying,
            "stream": None if self.stream is None else _stream_to_json(self.stream),
            "diverged": self.is_diverged,
            "external_start": self.has_external_start,
            "future_timestamps": None if future is None else asdict(future),
            "repair_failure": _failure_to_json(self.repair_failure),
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
            remote_overlap_bytes=found.integer_or_none("remote_overlap_bytes") or 0,
            copy_blocked=blocked_from_json(found, "copy_blocked", earlier="copy_held"),
            trim_blocked=blocked_from_json(found, "trim_blocked", earlier="trim_held"),
            expiry_blocked=blocked_from_json(found, "expiry_blocked", earlier="expiry_held"),
            is_copying=found.flag("copying"),
            stream=_stream_from(found.object_or_none("stream")),
            is_diverged=found.flag("diverged"),
            has_external_start=found.flag("external_start"),
            future_timestamps=_future_from(found.object_or_none("future_timestamps")),
            repair_failure=_failure_from(found.object_or_none("repair_failure")),
            problem=found.text("problem", ""),
        )


def _partition_from(found: JsonObject) -> TopicIdPartition:
    partition = found.integer("partition")
    if partition < 0:
        raise found.malformed("partition", "a partition's number")
    return TopicIdPartition(
        topic_id=found.kafka_id("topic_id"), topic=found.text("topic"), partition=partition
    )


def _stream_to_json(stream: StreamReport) -> Json:
    return {**asdict(stream), "merge_failure": _failure_to_json(stream.merge_failure)}


def _stream_from(found: JsonObject | None) -> StreamReport | None:
    if found is None:
        return None
    return StreamReport(
        begin_offset=found.integer_or_none("begin_offset"),
        position_offset=found.integer_or_none("position_offset"),
        size_bytes=found.integer_or_none("size_bytes"),
        age_ms=found.integer_or_none("age_ms"),
        unstored_ms=found.integer_or_none("unstored_ms"),
        rollover_ms=found.integer_or_none("rollover_ms"),
        open_transaction_ms=found.integer_or_none("open_transaction_ms"),
        merge_waiting_segments=found.integer_or_none("merge_waiting_segments"),
        merge_waiting_bytes=found.integer_or_none("merge_waiting_bytes"),
        merge_failure=_failure_from(found.object_or_none("merge_failure")),
    )


def _future_from(found: JsonObject | None) -> FutureTimestamps | None:
    if found is None:
        return None
    return FutureTimestamps(
        segment_count=found.integer("segment_count"),
        max_timestamp_ms=found.integer("max_timestamp_ms"),
    )


def _failure_to_json(failure: AttemptFailure | None) -> Json | None:
    if failure is None:
        return None
    return {
        "error": failure.error,
        "cause": failure.cause,
        "corrupt": failure.is_corrupt,
        "attempts": failure.attempts,
        "final": failure.is_final,
    }


def _failure_from(found: JsonObject | None) -> AttemptFailure | None:
    if found is None:
        return None
    return AttemptFailure(
        error=found.text("error"),
        cause=found.text("cause"),
        is_corrupt=found.flag("corrupt"),
        attempts=found.integer("attempts"),
        is_final=found.flag("final"),
    )
