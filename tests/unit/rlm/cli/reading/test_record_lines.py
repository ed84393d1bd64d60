from __future__ import annotations

import base64
import json
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from rlm.cli.reading.record_lines import human_line, json_lines
from rlm.remote_read.stored_records import Tier
from rsm.segment.batches.batch import TimestampType
from rsm.segment.batches.records import Record
from rsm.segment.ids import TopicIdPartition

TIP = TopicIdPartition(topic_id=UUID(int=1), topic="orders", partition=2)
_BYTES = st.none() | st.binary(max_size=40) | st.text(max_size=40).map(str.encode)
RECORDS = st.builds(
    Record,
    offset=st.integers(min_value=0, max_value=2**63 - 1),
    timestamp_ms=st.integers(min_value=-1, max_value=2**63 - 1),
    timestamp_type=st.sampled_from(TimestampType),
    key=_BYTES,
    value=_BYTES,
    headers=st.lists(st.tuples(st.text(max_size=10), _BYTES), max_size=3).map(tuple),
)


def fields_of(record: Record, tier: Tier) -> dict[str, Any]:
    """Return the documented fields of a record, in their order."""
    fields = {
        "topic": TIP.topic,
        "partition": TIP.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "timestamp_type": "LogAppendTime" if record.timestamp_type else "CreateTime",
    }
    for name, content in (("key", record.key), ("value", record.value)):
        fields |= (
            {name: text_of(content)}
            if content is None or text_of(content) is not None
            else {f"{name}_base64": base64.b64encode(content).decode()}
        )
    fields["headers"] = [
        [name, text_of(value)]
        if value is None or text_of(value) is not None
        else [name, None, base64.b64encode(value).decode()]
        for name, value in record.headers
    ]
    return {**fields, "tier": tier.value}


def text_of(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


@given(records=st.lists(RECORDS, max_size=3), tier=st.sampled_from(Tier))
def test_json_lines_when_any_records_then_what_json_writes_of_their_fields(
    records: list[Record], tier: Tier
) -> None:
    write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

    lines = json_lines(TIP, tier, records)

    assert lines == [write(fields_of(record, tier)) for record in records]
    assert not any("\n" in line or "\r" in line for line in lines)


def test_json_lines_when_plain_then_the_documented_fields() -> None:
    record = Record(
        offset=5,
        timestamp_ms=1_700_000_000_000,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        key=b"k",
        value=b"\xff",
        headers=(("h", b"v"),),
    )

    (line,) = json_lines(TIP, Tier.LOCAL, [record])

    assert json.loads(line) == {
        "topic": "orders",
        "partition": 2,
        "offset": 5,
        "timestamp_ms": 1_700_000_000_000,
        "timestamp_type": "LogAppendTime",
        "key": "k",
        "value_base64": "/w==",
        "headers": [["h", "v"]],
        "tier": "local",
    }


@given(record=RECORDS)
def test_human_line_when_any_record_then_one_line(record: Record) -> None:
    assert "\n" not in human_line(Tier.LOCAL, record)


def test_human_line_when_plain_then_columns() -> None:
    record = Record(
        offset=5,
        timestamp_ms=1_700_000_000_123,
        timestamp_type=TimestampType.CREATE_TIME,
        key=None,
        value=b'say "hi"\n',
        headers=(("h", b"v"),),
    )

    assert human_line(Tier.REMOTE, record) == (
        '5  2023-11-14T22:13:20.123Z  remote  null  "say \\"hi\\"\\n"  "h"="v"'
    )
