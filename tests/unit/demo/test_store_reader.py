from __future__ import annotations

import json

from demo.ledger import LoggedRecord
from demo.store_reader import logged_record
from rlm.cli.reading.record_lines import json_lines
from rlm.remote_read.stored_records import Tier
from tests.remote_world import TIP
from tests.segment_builder import record


def test_logged_record_when_printed_as_json_then_every_field_as_produced() -> None:
    headers = (("a", b"x"), ("b", None), ("c", b"\xff"), ("d", b""))
    found = [
        record(7, b"\xfe", key=None, headers=headers),
        record(8, None, key=b"\xfd"),
        record(9, b"", key="ä".encode()),
    ]

    read = [logged_record(json.loads(line)) for line in json_lines(TIP, Tier.REMOTE, found)]

    assert read == [
        LoggedRecord(
            partition=TIP.partition,
            offset=each.offset,
            timestamp_ms=each.timestamp_ms,
            key=each.key,
            value=each.value,
            headers=tuple(each.headers),
        )
        for each in found
    ]
