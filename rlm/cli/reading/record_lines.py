"""Formats records as JSON lines, or as lines for people. Pure."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable
from json.encoder import encode_basestring as _quoted

from rlm.cli.invocation.amounts import iso_time
from rlm.remote_read.stored_records import Tier
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.batches.batch import TimestampType
from rsm.segment.batches.records import Headers, Record
from rsm.segment.ids import TopicIdPartition

RECORD = JsonShape(
    name="Record",
    meaning="One record, on one line.",
    fields={
        "topic": JsonField(JsonKind.TEXT, "The topic's name."),
        "partition": JsonField(JsonKind.COUNT, "The partition's number."),
        "offset": JsonField(JsonKind.OFFSET, "The record's offset."),
        "timestamp_ms": JsonField(JsonKind.TIME, "The record's timestamp; -1 if it has none."),
        "timestamp_type": JsonField(JsonKind.TEXT, "`CreateTime` or `LogAppendTime`."),
        "key": JsonField(
            JsonKind.TEXT, "The key, if it is null or UTF-8.", is_nullable=True, is_optional=True
        ),
        "key_base64": JsonField(JsonKind.TEXT, "Any other key, in base64.", is_optional=True),
        "value": JsonField(
            JsonKind.TEXT, "The value, if it is null or UTF-8.", is_nullable=True, is_optional=True
        ),
        "value_base64": JsonField(JsonKind.TEXT, "Any other value, in base64.", is_optional=True),
        "headers": JsonField(
            JsonKind.LIST,
            "Each header as `[name, value]`, or `[name, null, base64]` if its value is not UTF-8.",
            is_list=True,
        ),
        "tier": JsonField(
            JsonKind.TEXT,
            f"The tier from which it was read: {' or '.join(f'`{each.value}`' for each in Tier)}.",
        ),
    },
)
_TIMESTAMP_TYPES = {
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


def json_lines(
    topic_id_partition: TopicIdPartition, tier: Tier, records: Iterable[Record]
) -> list[str]:
    """Format each record as a JSON object.

    Builds the text itself: `json` takes four times as long for these fields.
    """
    topic, partition = topic_id_partition.topic, topic_id_partition.partition
    start = f'{{"topic":{_quoted(topic)},"partition":{partition},"offset":'
    end = f',"tier":"{tier.value}"}}'
    no_headers = f',"headers":[]{end}'
    types = {each: f',"timestamp_type":"{name}",' for each, name in _TIMESTAMP_TYPES.items()}
    lines = []
    for offset, timestamp_ms, timestamp_type, key, value, headers in records:
        key_name, key_text = '"key":', "null"
        if key is not None:
            try:
                key_text = _quoted(key.decode())
            except UnicodeDecodeError:
                key_name, key_text = '"key_base64":', _base64(key)
        value_name, value_text = ',"value":', "null"
        if value is not None:
            try:
                value_text = _quoted(value.decode())
            except UnicodeDecodeError:
                value_name, value_text = ',"value_base64":', _base64(value)
        rest = f',"headers":{_headers(headers)}{end}' if headers else no_headers
        lines.append(
            f'{start}{offset},"timestamp_ms":{timestamp_ms}{types[timestamp_type]}'
            f"{key_name}{key_text}{value_name}{value_text}{rest}"
        )
    return lines


def human_line(tier: Tier, record: Record) -> str:
    """Format a record in columns on one line; keys and values are quoted or in base64."""
    columns = [str(record.offset), iso_time(record.timestamp_ms), tier.value, _shown(record.key)]
    columns.append(_shown(record.value))
    columns += [f"{_quoted(name)}={_shown(value)}" for name, value in record.headers]
    return "  ".join(columns)


def _headers(headers: Headers) -> str:
    return f"[{','.join([_header(*each) for each in headers])}]"


def _header(name: str, value: bytes | None) -> str:
    if value is None:
        return f"[{_quoted(name)},null]"
    try:
        return f"[{_quoted(name)},{_quoted(value.decode())}]"
    except UnicodeDecodeError:
        return f"[{_quoted(name)},null,{_base64(value)}]"


def _base64(content: bytes) -> str:
    return f'"{b2a_base64(content, newline=False).decode("ascii")}"'


def _shown(content: bytes | None) -> str:
    if content is None:
        return "null"
    try:
        return _quoted(content.decode())
    except UnicodeDecodeError:
        return f"base64:{b2a_base64(content, newline=False).decode('ascii')}"
