"""One record as one line: as JSON, or for people. Pure.

JSON: topic, partition, offset, timestamp_ms, timestamp_type, key, value, headers, tier. Bytes that
are UTF-8 are a string; others are base64 under the name with `_base64` behind it. A header is
[name, value], or [name, null, base64] where its value is not UTF-8.
"""

from __future__ import annotations

import base64
import json

from rlm.cli.times import iso_time
from rlm.remote_read.tiered_log import Tier
from rsm.segment.batch import TimestampType
from rsm.segment.ids import TopicIdPartition
from rsm.segment.records import Record

_TIMESTAMP_TYPES = {
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_line(topic_id_partition: TopicIdPartition, tier: Tier, record: Record) -> str:
    """The record as one JSON object."""
    fields: dict[str, object] = {
        "topic": topic_id_partition.topic,
        "partition": topic_id_partition.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "timestamp_type": _TIMESTAMP_TYPES[record.timestamp_type],
    }
    for name, content in (("key", record.key), ("value", record.value)):
        text = _text(content)
        if content is not None and text is None:
            fields[f"{name}_base64"] = _base64(content)
        else:
            fields[name] = text
    fields["headers"] = [_header(name, value) for name, value in record.headers]
    fields["tier"] = tier.value
    return _encode(fields)


def human_line(tier: Tier, record: Record) -> str:
    """The record in columns; text is quoted, so that a line stays one."""
    columns = [str(record.offset), iso_time(record.timestamp_ms), tier.value, _shown(record.key)]
    columns.append(_shown(record.value))
    columns += [f"{_encode(name)}={_shown(value)}" for name, value in record.headers]
    return "  ".join(columns)


def _header(name: str, value: bytes | None) -> list[str | None]:
    text = _text(value)
    if value is not None and text is None:
        return [name, None, _base64(value)]
    return [name, text]


def _text(content: bytes | None) -> str | None:
    if content is None:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _shown(content: bytes | None) -> str:
    if content is None:
        return "null"
    text = _text(content)
    return f"base64:{_base64(content)}" if text is None else _encode(text)
