"""Represents the JSON objects that several documents contain. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rlm.policy.blocked import Blocked
from rlm.status.json_object import JsonObject
from rlmm.state.anomalies import Anomaly
from rlmm.state.gaps import GapReason, RecordedGap
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.ids import id_to_text

Json = Mapping[str, object]

PARTITION = {
    "topic": JsonField(JsonKind.TEXT, "The topic's name."),
    "topic_id": JsonField(JsonKind.ID, "The topic's id."),
    "partition": JsonField(JsonKind.COUNT, "The partition's number."),
}

OFFSET_RANGE = JsonShape(
    name="OffsetRange",
    meaning="Offsets of a partition.",
    fields={
        "start_offset": JsonField(JsonKind.OFFSET, "The first offset."),
        "end_offset": JsonField(JsonKind.OFFSET, "The offset after the last one."),
    },
)
BLOCKED = JsonShape(
    name="Blocked",
    meaning="The rule that blocks copies, trims or expiry.",
    fields={
        "reason": JsonField(
            JsonKind.TEXT, "The rule, as metrics such as `rlm_copy_blocked` name it."
        )
    },
    others="The values that the rule compared, by name: integers and texts.",
)
GAP = JsonShape(
    name="Gap",
    meaning="A recorded range of offsets whose records are neither stored nor on the broker.",
    fields={
        "start_offset": JsonField(JsonKind.OFFSET, "First offset of the gap."),
        "end_offset": JsonField(JsonKind.OFFSET, "Offset after the gap."),
        "reason": JsonField(
            JsonKind.TEXT,
            "`shed` (the disk was full), `external_start` (another program deleted the records) "
            "or `accepted_loss` (an operator gave up a damaged segment).",
        ),
        "recorded_ms": JsonField(JsonKind.TIME, "When the gap was recorded."),
    },
)
ANOMALY = JsonShape(
    name="Anomaly",
    meaning="A stored object that is recorded as missing or corrupt.",
    fields={
        "segment_id": JsonField(JsonKind.ID, "The segment of the object."),
        "object": JsonField(JsonKind.TEXT, "The object's key in the store."),
        "kind": JsonField(
            JsonKind.TEXT, "`missing`, `corrupt`, or `loss_accepted` (an operator gave it up)."
        ),
        "first_ms": JsonField(JsonKind.TIME, "When the damage was first found."),
        "last_ms": JsonField(JsonKind.TIME, "When the damage was last found."),
        "attempts": JsonField(JsonKind.COUNT, "Number of reads that found the damage."),
    },
)

STORED_OBJECT = JsonShape(
    name="StoredObject",
    meaning="An object of a segment.",
    fields={
        "key": JsonField(JsonKind.TEXT, "Its key in the store."),
        "bytes": JsonField(JsonKind.BYTES, "Its size."),
        "crc32c": JsonField(JsonKind.COUNT, "Its CRC-32C.", is_nullable=True),
    },
)


def blocked_to_json(blocked: Blocked | None) -> Json | None:
    """Return what blocks copies, trims or expiry, with the compared values as fields."""
    return None if blocked is None else {"reason": blocked.reason, **blocked.values}


def blocked_from_json(found: JsonObject, name: str, *, earlier: str = "") -> Blocked | None:
    """Return what blocks copies, trims or expiry, as a field reports it; None if nothing does."""
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
    """Return a gap from its JSON. Raises CorruptError for an unknown reason."""
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
