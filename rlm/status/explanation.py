"""Explains where a record is, and why it is still or no longer on the broker. Pure.

The module uses the functions of the trim gate, so that the explanation matches its decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from rlm.facts.local_log import RolledSegment
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.blocked import Blocked
from rlm.policy.trim_gate import over_local_retention, segment_blocked, trim_forbidden
from rlm.policy.view import PartitionView
from rlm.status.document_parts import GAP, Json, gap_from_json, gap_to_json
from rlm.status.json_object import JsonObject
from rlmm.spi import SegmentRecord
from rlmm.state.gaps import RecordedGap
from rlmm.state.partition_state import PartitionState
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.coverage import stored_ranges
from rsm.segment.epochs import Lineage
from rsm.segment.ids import id_to_text
from rsm.segment.ranges import OffsetRange

CONTAINING_SEGMENT = JsonShape(
    name="ContainingSegment",
    meaning="A segment in the metadata, in any state, whose offsets include the record's.",
    fields={
        "id": JsonField(JsonKind.ID, "The segment's id."),
        "state": JsonField(JsonKind.TEXT, "Its state, such as `COPY_SEGMENT_FINISHED`."),
        "base_offset": JsonField(JsonKind.OFFSET, "Its first offset."),
        "end_offset": JsonField(JsonKind.OFFSET, "The offset after its last one."),
        "readable_from": JsonField(
            JsonKind.OFFSET,
            "First readable offset of the segment; null if no part of it is readable.",
            is_nullable=True,
        ),
        "readable_to": JsonField(
            JsonKind.OFFSET,
            "The offset after the last readable one; null if no part of it is readable.",
            is_nullable=True,
        ),
        "size_bytes": JsonField(JsonKind.BYTES, "Size of its log."),
        "max_timestamp_ms": JsonField(JsonKind.TIME, "Timestamp of its newest record."),
        "state_since_ms": JsonField(JsonKind.TIME, "When its state last changed."),
        "dead_lettered": JsonField(
            JsonKind.FLAG, "Whether a dead letter records that its deletion failed."
        ),
        "objects": JsonField(JsonKind.TEXT, "Keys of its objects in the store.", is_list=True),
    },
)
LOCAL_COPY = JsonShape(
    name="LocalCopy",
    meaning="The state of the record in the broker's log.",
    fields={
        "state": JsonField(
            JsonKind.TEXT,
            "`trimmed`, `active_segment`, `not_committed`, `within_local_retention`, `blocked` or "
            "`due`.",
        ),
        "reason": JsonField(JsonKind.TEXT, "What blocks the record's trim; empty if nothing does."),
        "base_offset": JsonField(
            JsonKind.OFFSET, "First offset of the record's rolled segment.", is_nullable=True
        ),
        "end_offset": JsonField(
            JsonKind.OFFSET, "The offset after that segment.", is_nullable=True
        ),
        "values": JsonField(JsonKind.MAP, "The values that the rule compared, by name."),
    },
)
OFFSET_EXPLANATION = JsonShape(
    name="OffsetExplanation",
    meaning="Where a record is, and why it is or is not on the broker.",
    fields={
        "offset": JsonField(JsonKind.OFFSET, "The record's offset."),
        "location": JsonField(
            JsonKind.TEXT,
            "`local`, `remote`, `both`, `below_log_start`, `above_high_watermark`, `gap` or "
            "`nowhere`.",
        ),
        "leader_epoch": JsonField(
            JsonKind.COUNT, "Leader epoch of the offset; null if unknown.", is_nullable=True
        ),
        "log_start_offset": JsonField(
            JsonKind.OFFSET, "First offset of both tiers.", is_nullable=True
        ),
        "local_start_offset": JsonField(JsonKind.OFFSET, "First offset of the broker's log."),
        "high_watermark": JsonField(JsonKind.OFFSET, "Kafka's high watermark."),
        "segments": JsonField(
            CONTAINING_SEGMENT, "Segments whose offsets include the record's.", is_list=True
        ),
        "gap": JsonField(GAP, "The recorded gap that contains the offset.", is_nullable=True),
        "local_copy": JsonField(
            LOCAL_COPY,
            "The record in the broker's log; null if the leader's manager did not answer.",
            is_nullable=True,
        ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainingSegment:
    """Represents a segment whose offsets include the record's.

    `readable` is None if no part of the segment is readable.
    """

    segment_id: UUID
    state: str
    offsets: OffsetRange
    readable: OffsetRange | None
    size_bytes: int
    max_timestamp_ms: int
    state_since_ms: int
    is_dead_lettered: bool
    object_keys: tuple[str, ...]

    def to_json(self) -> Json:
        readable = self.readable
        return {
            "id": id_to_text(self.segment_id),
            "state": self.state,
            "base_offset": self.offsets.start_offset,
            "end_offset": self.offsets.end_offset,
            "readable_from": None if readable is None else readable.start_offset,
            "readable_to": None if readable is None else readable.end_offset,
            "size_bytes": self.size_bytes,
            "max_timestamp_ms": self.max_timestamp_ms,
            "state_since_ms": self.state_since_ms,
            "dead_lettered": self.is_dead_lettered,
            "objects": list(self.object_keys),
        }

    @classmethod
    def from_json(cls, found: JsonObject) -> ContainingSegment:
        return cls(
            segment_id=found.kafka_id("id"),
            state=found.text("state"),
            offsets=found.offsets("base_offset", "end_offset"),
            readable=found.offsets_or_none("readable_from", "readable_to"),
            size_bytes=found.integer("size_bytes"),
            max_timestamp_ms=found.integer("max_timestamp_ms"),
            state_since_ms=found.integer("state_since_ms"),
            is_dead_lettered=found.flag("dead_lettered"),
            object_keys=found.texts("objects"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCopy:
    """Represents the state of the record in the local log.

    `state` is trimmed, active_segment, not_committed, within_local_retention, blocked or due. A
    record beyond the end of the log is also not_committed. `offsets` are those of the record's
    rolled segment; None if it is in no rolled segment. `values` are what the rule compared.
    """

    state: str
    reason: str = ""
    offsets: OffsetRange | None = None
    values: Mapping[str, int | str] = field(default_factory=dict)

    def to_json(self) -> Json:
        offsets = self.offsets
        return {
            "state": self.state,
            "reason": self.reason,
            "base_offset": None if offsets is None else offsets.start_offset,
            "end_offset": None if offsets is None else offsets.end_offset,
            "values": dict(self.values),
        }

    @classmethod
    def from_json(cls, found: JsonObject) -> LocalCopy:
        values = found.object_or_none("values")
        return cls(
            state=found.text("state"),
            reason=found.text("reason", ""),
            offsets=found.offsets_or_none("base_offset", "end_offset"),
            values={} if values is None else values.values(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetExplanation:
    """Represents where an offset is, its local copy, and the gap that contains it, if any.

    `location` is local, remote, both, below_log_start, above_high_watermark, gap or nowhere. Only
    the leader's manager knows the local copy: if it did not answer, `local_copy` is None.
    """

    offset: int
    location: str
    leader_epoch: int | None
    log_start_offset: int | None
    local_start_offset: int
    high_watermark: int
    segments: tuple[ContainingSegment, ...]
    gap: RecordedGap | None = None
    local_copy: LocalCopy | None = None

    def to_json(self) -> Json:
        return {
            "offset": self.offset,
            "location": self.location,
            "leader_epoch": self.leader_epoch,
            "log_start_offset": self.log_start_offset,
            "local_start_offset": self.local_start_offset,
            "high_watermark": self.high_watermark,
            "segments": [each.to_json() for each in self.segments],
            "gap": None if self.gap is None else gap_to_json(self.gap),
            "local_copy": None if self.local_copy is None else self.local_copy.to_json(),
        }

    @classmethod
    def from_json(cls, document: object) -> OffsetExplanation:
        found = JsonObject(document)
        gap, copy = found.object_or_none("gap"), found.object_or_none("local_copy")
        return cls(
            offset=found.integer("offset"),
            location=found.text("location", earlier="place"),
            leader_epoch=found.integer_or_none("leader_epoch"),
            log_start_offset=found.integer_or_none("log_start_offset"),
            local_start_offset=found.integer("local_start_offset"),
            high_watermark=found.integer("high_watermark"),
            segments=tuple(map(ContainingSegment.from_json, found.objects("segments"))),
            gap=None if gap is None else gap_from_json(gap),
            local_copy=None if copy is None else LocalCopy.from_json(copy),
        )


def offset_location(
    offset: int,
    *,
    state: PartitionState,
    lineage: Lineage,
    offsets: PartitionOffsets,
    segments: Sequence[SegmentRecord],
) -> OffsetExplanation:
    """Locate an offset by the metadata and the leader's offsets."""
    ranges = {
        part.metadata.segment_id: part.offsets
        for part in stored_ranges(lineage, (record.metadata for record in segments))
    }
    holding = tuple(
        _containing(record, ranges.get(record.metadata.segment_id))
        for record in segments
        if offset in record.metadata.offsets
    )
    is_remote = any(each.readable is not None and offset in each.readable for each in holding)
    is_local = offsets.log_start_offset <= offset
    log_start = state.first_readable_offset
    gap: RecordedGap | None = None
    if log_start is not None and offset < log_start:
        location = "below_log_start"
    elif offset >= offsets.high_watermark:
        location = "above_high_watermark"
    elif is_local or is_remote:
        location = "both" if is_local and is_remote else "local" if is_local else "remote"
    else:
        gap = next((each for each in state.gaps if offset in each.offsets), None)
        location = "nowhere" if gap is None else "gap"
    return OffsetExplanation(
        offset=offset,
        location=location,
        leader_epoch=lineage.epoch_for_offset(offset),
        log_start_offset=log_start,
        local_start_offset=offsets.log_start_offset,
        high_watermark=offsets.high_watermark,
        segments=holding,
        gap=gap,
    )


def local_copy(view: PartitionView, offset: int, blocked_elsewhere: Blocked | None) -> LocalCopy:
    """Return the state of the record in the local log, and what blocks its trim.

    `blocked_elsewhere` is how share groups blocked the last trim that the gate allowed; None if
    they did not.
    """
    if offset < view.local_start_offset:
        return LocalCopy(state="trimmed", values={"local_start_offset": view.local_start_offset})
    segment = next((each for each in view.local.rolled if offset in each.offsets), None)
    if segment is None:
        committed = offset < view.offsets.high_watermark
        return LocalCopy(state="active_segment" if committed else "not_committed")
    over = over_local_retention(view)
    if all(each is not segment for each, _ in over):
        values = {
            "local_retention_ms": view.policy.effective_local_retention_ms,
            "local_retention_bytes": view.policy.effective_local_retention_bytes,
            "age_ms": view.moment.retention_ms - segment.max_timestamp_ms,
        }
        return LocalCopy(state="within_local_retention", offsets=segment.offsets, values=values)
    blocked = trim_forbidden(view) or _first_blocked(view, [each for each, _ in over], segment)
    blocked = blocked or blocked_elsewhere
    if blocked is None:
        return LocalCopy(state="due", offsets=segment.offsets)
    return LocalCopy(
        state="blocked", reason=blocked.reason, offsets=segment.offsets, values=dict(blocked.values)
    )


def _first_blocked(
    view: PartitionView, over: Sequence[RolledSegment], segment: RolledSegment
) -> Blocked | None:
    """Return the first block among the segments up to this one, oldest first, if any."""
    for each in over:
        blocked = segment_blocked(view, each)
        if blocked is not None:
            return blocked
        if each is segment:
            break
    return None


def _containing(record: SegmentRecord, readable: OffsetRange | None) -> ContainingSegment:
    metadata = record.metadata
    return ContainingSegment(
        segment_id=metadata.segment_id.id,
        state=metadata.state.name,
        offsets=metadata.offsets,
        readable=readable,
        size_bytes=metadata.segment_size_bytes,
        max_timestamp_ms=metadata.max_timestamp_ms,
        state_since_ms=record.changed_ms,
        is_dead_lettered=record.is_dead_lettered,
        object_keys=metadata.object_keys,
    )
