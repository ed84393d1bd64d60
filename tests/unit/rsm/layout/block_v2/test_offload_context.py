from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st

from rsm.layout.block_v2.ledger_info import LedgerInfo, decode_ledger_info, encode_ledger_info
from rsm.layout.block_v2.offload_context import (
    OffloadContext,
    OffloadDriver,
    OffloadSegment,
    context_from_message,
    context_to_message,
)
from rsm.layout.blocks.ledger_metadata import LedgerState
from rsm.layout.proto import managed_ledger_pb2 as pb
from rsm.segment.errors import CorruptError

I64 = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=5)
DRIVERS = st.builds(
    OffloadDriver,
    name=st.none() | TEXTS,
    properties=st.lists(st.tuples(TEXTS, TEXTS), max_size=2).map(tuple),
)
SEGMENTS = st.builds(
    OffloadSegment,
    uuid=st.none() | st.uuids(),
    last_entry_id=st.none() | I64,
    is_complete=st.none() | st.booleans(),
    is_bookkeeper_deleted=st.none() | st.booleans(),
    assigned_ms=st.none() | I64,
    offloaded_ms=st.none() | I64,
    driver=st.none() | DRIVERS,
)
CONTEXTS = st.builds(
    OffloadContext,
    uuid=st.none() | st.uuids(),
    segments=st.lists(SEGMENTS, max_size=3).map(tuple),
    is_complete=st.none() | st.booleans(),
    is_bookkeeper_deleted=st.none() | st.booleans(),
    timestamp_ms=st.none() | I64,
    driver=st.none() | DRIVERS,
)
NEWER = b"\xfa\x06\x03new"  # field 111
UUID_TEXT = "f0000000-0000-0001-8000-000000000002"
HALVES = (0xF000000000000001, 0x8000000000000002)  # varints have no sign


@given(context=CONTEXTS)
def test_context_when_encoded_then_decoded_to_the_same(context: OffloadContext) -> None:
    assert context_from_message(context_to_message(context)) == context


@given(context=st.none() | CONTEXTS, count=st.none() | st.integers(0, 2**63 - 1))
def test_info_when_encoded_then_decoded_to_the_same(
    context: OffloadContext | None, count: int | None
) -> None:
    info = LedgerInfo(
        ledger_id=3,
        entry_count=count,
        size_bytes=count,
        closed_ms=count,
        offload_context=context,
        properties=(("key", "value"),),
    )

    assert decode_ledger_info(encode_ledger_info(info)) == info


def test_context_when_encoded_then_the_numbers_are_the_proposals() -> None:
    driver = OffloadDriver(name="s3", properties=(("bucket", "b"),))
    segment = OffloadSegment(
        uuid=UUID(UUID_TEXT),
        is_complete=True,
        is_bookkeeper_deleted=False,
        assigned_ms=5,
        offloaded_ms=6,
        last_entry_id=7,
        driver=driver,
    )
    context = OffloadContext(
        uuid=UUID(UUID_TEXT),
        is_complete=False,
        is_bookkeeper_deleted=True,
        timestamp_ms=5,
        driver=driver,
        segments=(segment,),
    )

    outer = fields_of(context_to_message(context).SerializeToString())
    inner = fields_of(outer[7])

    assert [outer[number] for number in range(1, 6)] == [*HALVES, 0, 1, 5]
    assert [inner[number] for number in range(1, 8)] == [*HALVES, 1, 0, 5, 6, 7]
    assert sorted(outer) == [*range(1, 8)]
    assert sorted(inner) == [*range(1, 9)]
    assert fields_of(outer[6]) == fields_of(inner[8])
    assert fields_of(inner[8])[1] == b"s3"
    assert fields_of(fields_of(inner[8])[2]) == {1: b"bucket", 2: b"b"}


def fields_of(content: Any) -> dict[int, Any]:
    """Return a message's fields by their numbers, read by a message that knows none of them."""
    unknown = UnknownFieldSet(Empty.FromString(content))
    fields = [unknown[number] for number in range(len(unknown))]
    return {field.field_number: field.data for field in fields}


def test_messages_when_a_newer_writer_added_fields_then_kept() -> None:
    context = context_to_message(OffloadContext(timestamp_ms=5)).SerializeToString() + NEWER
    info = encode_ledger_info(LedgerInfo(ledger_id=3)) + NEWER

    decoded = context_from_message(pb.OffloadContext.FromString(context))
    assert context_to_message(decoded).SerializeToString() == context
    assert encode_ledger_info(decode_ledger_info(info)) == info


@pytest.mark.parametrize("content", [b"\xff", b"\x08", b"\x3a\x05a"])
def test_info_when_it_is_no_protobuf_then_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptError, match="not protobuf"):
        decode_ledger_info(content)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (pb.LedgerInfo(entries=1), "lacks a field"),
        (pb.LedgerInfo(ledger_id=1, entries=-1), "negative"),
        (pb.LedgerInfo(ledger_id=1, size=-1), "negative"),
    ],
)
def test_info_when_a_field_is_invalid_then_corrupt(message: pb.LedgerInfo, expected: str) -> None:
    with pytest.raises(CorruptError, match=expected):
        decode_ledger_info(message.SerializeToString())


@pytest.mark.parametrize(
    ("closed_ms", "state"), [(None, LedgerState.OPEN), (0, LedgerState.CLOSED)]
)
def test_metadata_when_the_ledger_has_a_time_of_its_end_then_closed(
    closed_ms: int | None, state: LedgerState
) -> None:
    info = LedgerInfo(ledger_id=3, entry_count=9, size_bytes=70, closed_ms=closed_ms)

    metadata = info.metadata(4)

    assert (metadata.state, metadata.length_bytes, metadata.last_entry_id) == (state, 70, 4)
