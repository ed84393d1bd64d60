"""Previews what retention would do to a partition now. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from rlm.policy.blocked import Blocked
from rlm.policy.plan import Plan
from rlm.policy.retention import log_pieces
from rlm.policy.view import PartitionView
from rlm.status.document_parts import BLOCKED, Json, blocked_from_json, blocked_to_json
from rlm.status.json_object import JsonObject
from rsm.program.json_shape import JsonField, JsonKind, JsonShape

DUE_DELETION = JsonShape(
    name="DueDeletion",
    meaning="A segment that the next cycle deletes. Its copy may be unfinished.",
    fields={
        "base_offset": JsonField(JsonKind.OFFSET, "First offset of the segment."),
        "end_offset": JsonField(JsonKind.OFFSET, "Offset after the segment."),
        "size_bytes": JsonField(JsonKind.BYTES, "Size of the segment's log."),
        "rule": JsonField(JsonKind.TEXT, "The rule that deletes it, with the compared values."),
    },
)
RETENTION_PREVIEW = JsonShape(
    name="RetentionPreview",
    meaning="What retention would do to a partition now.",
    fields={
        "topic": JsonField(JsonKind.TEXT, "The topic's name."),
        "partition": JsonField(JsonKind.COUNT, "The partition's number."),
        "log_start_offset": JsonField(
            JsonKind.OFFSET,
            "First offset of both tiers; null if not known yet.",
            is_nullable=True,
        ),
        "new_log_start_offset": JsonField(
            JsonKind.OFFSET, "`log_start_offset` after the next cycle.", is_nullable=True
        ),
        "rule": JsonField(JsonKind.TEXT, "Why the log start moves; empty if it does not."),
        "expiring_segments": JsonField(
            JsonKind.COUNT, "Number of segments that end between the old and the new log start."
        ),
        "expiring_bytes": JsonField(JsonKind.BYTES, "Size of these segments."),
        "deletions": JsonField(DUE_DELETION, "Segments that the next cycle deletes.", is_list=True),
        "local_start_offset": JsonField(JsonKind.OFFSET, "First offset of the broker's log."),
        "new_local_start_offset": JsonField(
            JsonKind.OFFSET, "`local_start_offset` after the next trim."
        ),
        "trim_rule": JsonField(
            JsonKind.TEXT, "The rule that allows the next trim; empty if there is none."
        ),
        "trim_blocked": JsonField(
            BLOCKED, "What blocks trims; null if nothing does.", is_nullable=True
        ),
        "expiry_blocked": JsonField(
            BLOCKED, "What blocks expiry; null if nothing does.", is_nullable=True
        ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DueDeletion:
    """Represents a segment that the next cycle deletes, and the rule for its deletion."""

    base_offset: int
    end_offset: int
    size_bytes: int
    rule: str

    @classmethod
    def from_json(cls, found: JsonObject) -> DueDeletion:
        return cls(
            base_offset=found.integer("base_offset"),
            end_offset=found.integer("end_offset"),
            size_bytes=found.integer("size_bytes"),
            rule=found.text("rule"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPreview:
    """Represents the part of a cycle's plan that deletes data of a partition.

    `rule` is why the log start moves; empty if it does not. The expiring segments end at or below
    the new log start. A log start is None if it is not known yet.
    """

    topic: str
    partition: int
    log_start_offset: int | None
    new_log_start_offset: int | None
    local_start_offset: int
    new_local_start_offset: int
    rule: str = ""
    expiring_segments: int = 0
    expiring_bytes: int = 0
    deletions: tuple[DueDeletion, ...] = ()
    trim_rule: str = ""
    trim_blocked: Blocked | None = None
    expiry_blocked: Blocked | None = None

    def to_json(self) -> Json:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "log_start_offset": self.log_start_offset,
            "new_log_start_offset": self.new_log_start_offset,
            "rule": self.rule,
            "expiring_segments": self.expiring_segments,
            "expiring_bytes": self.expiring_bytes,
            "deletions": [asdict(each) for each in self.deletions],
            "local_start_offset": self.local_start_offset,
            "new_local_start_offset": self.new_local_start_offset,
            "trim_rule": self.trim_rule,
            "trim_blocked": blocked_to_json(self.trim_blocked),
            "expiry_blocked": blocked_to_json(self.expiry_blocked),
        }

    @classmethod
    def from_json(cls, found: JsonObject) -> RetentionPreview:
        return cls(
            topic=found.text("topic"),
            partition=found.integer("partition"),
            log_start_offset=found.integer_or_none("log_start_offset"),
            new_log_start_offset=found.integer_or_none("new_log_start_offset"),
            local_start_offset=found.integer("local_start_offset"),
            new_local_start_offset=found.integer("new_local_start_offset"),
            rule=found.text("rule", ""),
            expiring_segments=found.integer("expiring_segments"),
            expiring_bytes=found.integer("expiring_bytes"),
            deletions=tuple(map(DueDeletion.from_json, found.objects("deletions"))),
            trim_rule=found.text("trim_rule", ""),
            trim_blocked=blocked_from_json(found, "trim_blocked", earlier="trim_held"),
            expiry_blocked=blocked_from_json(found, "expiry_blocked", earlier="expiry_held"),
        )


def retention_preview(view: PartitionView, decided: Plan) -> RetentionPreview:
    """Return what the plan of a cycle would expire, delete and trim."""
    tip, start = view.topic_id_partition, decided.log_start
    current = view.state.log_start_offset
    new = current if start is None else start.offset
    gone = [
        piece for piece in log_pieces(view) if new is not None and piece.offsets.end_offset <= new
    ]
    return RetentionPreview(
        topic=tip.topic,
        partition=tip.partition,
        log_start_offset=current,
        new_log_start_offset=new,
        local_start_offset=view.local_start_offset,
        new_local_start_offset=decided.trim.offset or view.local_start_offset,
        rule="" if start is None else start.reason,
        expiring_segments=len(gone),
        expiring_bytes=sum(piece.size_bytes for piece in gone),
        deletions=tuple(
            DueDeletion(
                base_offset=each.record.metadata.offsets.start_offset,
                end_offset=each.record.metadata.offsets.end_offset,
                size_bytes=each.record.metadata.segment_size_bytes,
                rule=each.reason,
            )
            for each in decided.deletions
        ),
        trim_rule=decided.trim.rule,
        trim_blocked=decided.trim.blocked,
        expiry_blocked=decided.expiry_blocked,
    )
