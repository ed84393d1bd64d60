"""Formats records of the metadata topics as JSON objects, and as lines for people. Pure.

Names have Kafka's spelling and meaning where Kafka has them (RemoteLogSegmentId, StartOffset, …).
So EndOffset is a segment's last offset. Ids have Kafka's text form; bytes are base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from uuid import UUID

from rlm.cli.invocation.amounts import iso_time
from rlmm.consumer import ConsumedRecord
from rlmm.events.event import Event
from rlmm.events.segment import SegmentEvent
from rlmm.native.audit import NativeFinding, NativeFindingKind
from rlmm.native.records import (
    NativeRecord,
    NativeSegmentFacts,
)
from rlmm.positions import MetadataPosition
from rlmm.record_keys import RecordKey
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition, id_to_text
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject

_POSITION = {
    "MetadataPartition": JsonField(JsonKind.COUNT, "The partition of the metadata topic."),
    "MetadataOffset": JsonField(JsonKind.OFFSET, "The record's offset in that partition."),
    "AppendTimeMs": JsonField(JsonKind.TIME, "When the broker appended the record."),
}
METADATA_RECORD = JsonShape(
    name="MetadataRecord",
    meaning="One record of the metadata topic, on its own line.",
    fields={
        **_POSITION,
        "Type": JsonField(
            JsonKind.TEXT,
            "The kind of the event, such as `RemoteLogSegmentMetadata`; `Tombstone` for a record "
            "that removes an earlier one.",
        ),
    },
    others="The fields of the event, as [metadata](metadata.md) lists them, in Kafka's spelling, "
    "such as `SegmentSizeInBytes`. `EndOffset` is a segment's last offset. Ids have Kafka's text "
    "form; bytes are base64. Secrets are omitted.",
)
NATIVE_FINDING = JsonShape(
    name="NativeFinding",
    meaning="A fault in the metadata of Kafka's own tiered storage, on its own line. The position "
    "belongs to the record that shows the fault; for a gap, to the record of the segment after it.",
    fields={
        **_POSITION,
        "Type": JsonField(
            JsonKind.TEXT, f"One of {', '.join(f'`{each.value}`' for each in NativeFindingKind)}."
        ),
        "TopicIdPartition": JsonField(
            JsonShape(
                name="TopicIdPartition",
                meaning="A partition, in Kafka's spelling.",
                fields={
                    "Name": JsonField(JsonKind.TEXT, "The topic's name."),
                    "Id": JsonField(JsonKind.ID, "The topic's id."),
                    "Partition": JsonField(JsonKind.COUNT, "The partition's number."),
                },
            ),
            "The partition.",
        ),
        "Id": JsonField(
            JsonKind.ID, "The segment; null if the fault concerns no single one.", is_nullable=True
        ),
        "StartOffset": JsonField(
            JsonKind.OFFSET, "First offset; null if the fault has no offsets.", is_nullable=True
        ),
        "EndOffset": JsonField(
            JsonKind.OFFSET, "Last offset, inclusive; null if `StartOffset` is.", is_nullable=True
        ),
    },
)

_SPELLINGS = {"crc32c": "Crc32c", "id": "Id", "ms": "Ms"}
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

Document = dict[str, object]


def consumed_document(record: ConsumedRecord) -> Document:
    """Format a record of the metadata topic."""
    shown = _tombstone(record.key) if record.event is None else _event(record.event)
    return {**_position_fields(record.position, record.append_time_ms), **shown}


def native_document(
    position: MetadataPosition, append_time_ms: int, record: NativeRecord | None
) -> Document:
    """Format a record of Kafka's own metadata topic; None is a tombstone."""
    native_position = _position_fields(position, append_time_ms)
    if record is None:
        return {**native_position, "Type": "Tombstone"}
    shown: Document = {"Type": type(record).__name__.removesuffix("Record")}
    for name, value in _named(record).items():
        if isinstance(value, NativeSegmentFacts):
            shown |= _facts(value)
        elif name == "State":
            shown[_state_name(record)] = _plain(value)
        elif isinstance(value, RemoteLogSegmentId):
            shown["RemoteLogSegmentId"] = _plain(value)
        else:
            shown[name] = _plain(value)
    return {**native_position, **shown}


def native_finding_document(finding: NativeFinding) -> Document:
    """Format a finding in Kafka's own metadata topic, with the position of its record."""
    offsets = finding.offsets
    return {
        **_position_fields(
            finding.native_position.position, finding.native_position.append_time_ms
        ),
        "Type": finding.kind.value,
        "TopicIdPartition": _plain(finding.topic_id_partition),
        "Id": None if finding.segment_id is None else id_to_text(finding.segment_id.id),
        "StartOffset": None if offsets is None else offsets.start_offset,
        "EndOffset": None if offsets is None else offsets.last_offset,
    }


def json_line(document: Document) -> str:
    """Format a document as one line of JSON."""
    return _encode(document)


def human_line(document: Document) -> str:
    """Format a document as one line: position, time, type, and the rest as name=value."""
    rest = dict(document)
    native_position = f"{rest.pop('MetadataPartition')}:{rest.pop('MetadataOffset')}"
    time_ms = rest.pop("AppendTimeMs")
    assert isinstance(time_ms, int)
    columns = [native_position, iso_time(time_ms), str(rest.pop("Type"))]
    columns += [f"{name}={_short(value)}" for name, value in rest.items() if value is not None]
    return "  ".join(columns)


def _position_fields(position: MetadataPosition, append_time_ms: int) -> Document:
    return {
        "MetadataPartition": position.partition,
        "MetadataOffset": position.offset,
        "AppendTimeMs": append_time_ms,
    }


def _tombstone(key: RecordKey) -> Document:
    return {
        "Type": "Tombstone",
        "Kind": key.kind.name,
        "Subject": key.subject.hex(),
        "EventId": id_to_text(UUID(bytes=key.event_id)) if key.event_id else None,
    }


def _event(event: Event) -> Document:
    if not isinstance(event, SegmentEvent):
        return {"Type": type(event).__name__, **{n: _plain(v) for n, v in _named(event).items()}}
    return {
        "Type": "RemoteLogSegmentMetadata",
        **_metadata(event.metadata),
        "ExpectedState": _plain(event.expected_state),
        "CopyTimeoutMs": event.copy_timeout_ms or None,
        "CopyDeadlineMs": event.copy_deadline_ms or None,
        "EventId": _plain(event.event_id),
    }


def _metadata(metadata: RemoteLogSegmentMetadata) -> Document:
    return {
        "RemoteLogSegmentId": _plain(metadata.segment_id),
        "StartOffset": metadata.offsets.start_offset,
        "EndOffset": metadata.offsets.end_offset - 1,
        "BrokerId": metadata.writer.broker_id,
        "MaxTimestampMs": metadata.max_timestamp_ms,
        "EventTimestampMs": metadata.event_timestamp_ms,
        "SegmentLeaderEpochs": _plain(metadata.segment_leader_epochs),
        "SegmentSizeInBytes": metadata.segment_size_bytes,
        "CustomMetadata": _plain(metadata.custom_metadata or None),
        "RemoteLogSegmentState": metadata.state.name,
        "TxnIndexEmpty": not metadata.has_transaction_index,
        "LeaderEpoch": metadata.writer.leader_epoch,
        "Incarnation": _plain(metadata.writer.incarnation),
        "Layout": metadata.layout,
        "Objects": [_plain(each) for each in metadata.objects],
    }


def _facts(facts: NativeSegmentFacts) -> Document:
    return {
        "StartOffset": facts.start_offset,
        "EndOffset": facts.end_offset,
        "BrokerId": facts.broker_id,
        "MaxTimestampMs": facts.max_timestamp_ms,
        "EventTimestampMs": facts.event_timestamp_ms,
        "SegmentLeaderEpochs": [_epoch(*entry) for entry in facts.segment_leader_epochs],
        "SegmentSizeInBytes": facts.segment_size_bytes,
        "CustomMetadata": _plain(facts.custom_metadata),
        "RemoteLogSegmentState": facts.state.name,
        "TxnIndexEmpty": facts.txn_index_empty,
    }


def _state_name(record: NativeRecord) -> str:
    names = {"RemotePartitionDeleteMetadataRecord": "RemotePartitionDeleteState"}
    return names.get(type(record).__name__, "RemoteLogSegmentState")


def _plain(value: object) -> object:  # noqa: PLR0911 - one way for each kind of value
    """Convert a value to its JSON form."""
    match value:
        case Enum():
            return value.name
        case None | str() | int():
            return value
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case UUID():
            return id_to_text(value)
        case TopicIdPartition():
            topic_id = id_to_text(value.topic_id)
            return {"Name": value.topic, "Id": topic_id, "Partition": value.partition}
        case Lineage():
            return [_epoch(each.epoch, each.start_offset) for each in value.entries]
        case StoredObject():
            return {"Key": value.key, "LengthBytes": value.length_bytes, "Crc32c": value.crc32c}
        case tuple() | list():
            return [_plain(each) for each in value]
        case frozenset():
            return sorted(str(_plain(each)) for each in value)
    return {name: _plain(each) for name, each in _named(value).items()}


def _epoch(epoch: int, start_offset: int) -> Document:
    return {"LeaderEpoch": epoch, "Offset": start_offset}


def _named(value: object) -> Mapping[str, object]:
    """Return a dataclass's fields under the names that Kafka's schemas would use.

    Omits fields with `repr=False`, because they are secrets.
    """
    assert is_dataclass(value), f"not a value of an event: {value!r}"
    return {
        "".join(part.capitalize() for part in field.name.split("_")): getattr(value, field.name)
        for field in fields(value)
        if field.init and field.repr and field.name != "unknown_fields"
    }


def _short(value: object) -> str:
    """Format a value; segment and partition ids have the same form as in logs."""
    if isinstance(value, dict) and "TopicIdPartition" in value:
        return f"{_short(value['TopicIdPartition'])}:{value.get('Id', '')}"
    if isinstance(value, dict) and set(value) == {"Name", "Id", "Partition"}:
        return f"{value['Name']}-{value['Id']}:{value['Partition']}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(_short, value))
    if isinstance(value, dict):
        return "/".join(_short(each) for each in value.values() if each is not None)
    return str(value)
