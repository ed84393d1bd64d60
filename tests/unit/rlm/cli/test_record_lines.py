from __future__ import annotations

import base64
import json
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from rlm.cli.record_lines import human_line, json_line
from rlm.remote_read.tiered_log import Tier
from rsm.segment.batch import TimestampType
from rsm.segment.ids import TopicIdPartition
from rsm.segment.records import Record

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


def content_of(row: dict[str, str | None], name: str) -> bytes | None:
    if f"{name}_base64" in row:
        return base64.b64decode(row[f"{name}_base64"] or "")
    text = row[name]
    return None if text is None else text.encode()


@given(record=RECORDS)
def test_json_line_when_any_record_then_one_line_that_tells_all_of_it(record: Record) -> None:
    line = json_line(TIP, Tier.REMOTE, record)

    row = json.loads(line)
    assert "\n" not in line
    assert content_of(row, "key") == record.key
    assert content_of(row, "value") == record.value
    assert [h[0] for h in row["headers"]] == [name for name, _ in record.headers]
    assert [
        base64.b64decode(h[2]) if len(h) == 3 else None if h[1] is None else h[1].encode()
        for h in row["headers"]
    ] == [value for _, value in record.headers]


def test_json_line_when_plain_then_the_documented_fields() -> None:
    record = Record(
        offset=5,
        timestamp_ms=1_700_000_000_000,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        key=b"k",
        value=b"\xff",
        headers=(("h", b"v"),),
    )

    assert json.loads(json_line(TIP, Tier.LOCAL, record)) == {
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
