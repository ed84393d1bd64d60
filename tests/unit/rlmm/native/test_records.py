"""Kafka's own records, damaged in every way."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.native.records import (
    NativePartitionDeleteState,
    NativeSegmentState,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
    decode_native,
    topic_of_native,
)
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition

_ORDERS = TopicIdPartition(topic_id=UUID(int=0x0DE5), topic="orders", partition=7)
_TOPIC = b"\x07orders" + _ORDERS.topic_id.bytes + b"\x00\x00\x00\x07\x00"
_DELETE = b"\x01\x02\x00" + _TOPIC + b"\x00\x00\x00\x01" + b"\x00" * 7 + b"\x05" + b"\x01" + b"\x00"
_UPDATE = (
    b"\x01\x01\x00"
    + _TOPIC
    + UUID(int=9).bytes
    + b"\x00"
    + b"\x00\x00\x00\x02"
    + b"\x00" * 7
    + b"\x06"
    + b"\x04abc"
    + b"\x02"
    + b"\x00"
)
_SEGMENT = (
    b"\x01\x00\x00"
    + _TOPIC
    + UUID(int=9).bytes
    + b"\x00"
    + b"\x00" * 16
    + b"\x00" * 4
    + b"\x00" * 16
    + b"\x02"
    + b"\x00" * 12
    + b"\x00"
    + b"\x00" * 4
    + b"\x00"
    + b"\x01"
    + b"\x01\x00\x01\x01"
)


def test_native_update_when_read_then_says_what_was_written() -> None:
    record = decode_native(_UPDATE)

    assert record == RemoteLogSegmentMetadataUpdateRecord(
        segment_id=RemoteLogSegmentId(topic_id_partition=_ORDERS, id=UUID(int=9)),
        broker_id=2,
        event_timestamp_ms=6,
        custom_metadata=b"abc",
        state=NativeSegmentState.DELETE_SEGMENT_STARTED,
    )
    assert topic_of_native(record) == "orders"


def test_native_partition_delete_when_read_then_says_what_was_written() -> None:
    record = decode_native(_DELETE)

    assert record == RemotePartitionDeleteMetadataRecord(
        topic_id_partition=_ORDERS,
        broker_id=1,
        event_timestamp_ms=5,
        state=NativePartitionDeleteState.DELETE_PARTITION_STARTED,
    )


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"\x02" + _DELETE[1:], id="frame"),
        pytest.param(b"\x01\x09" + _DELETE[2:], id="type"),
        pytest.param(b"\x01\x02\x01" + _DELETE[3:], id="version"),
        pytest.param(_DELETE[:-2] + b"\x09\x00", id="state"),
    ],
)
def test_native_record_when_of_a_newer_kafka_then_is_unsupported(value: bytes) -> None:
    """Scenario 102: records of a newer version are distinguished from broken ones."""
    with pytest.raises(UnsupportedError):
        decode_native(value)


@pytest.mark.parametrize("value", [_DELETE, _UPDATE, _SEGMENT], ids=["delete", "update", "segment"])
def test_native_record_when_cut_short_or_longer_then_is_corrupt(value: bytes) -> None:
    for broken in [*(value[:length] for length in range(len(value))), value + b"\x00"]:
        with pytest.raises(CorruptError):
            decode_native(broken)


@given(
    data=st.one_of(
        st.binary(max_size=200),
        st.builds(
            lambda value, position, byte: value[:position] + bytes((byte,)) + value[position + 1 :],
            st.sampled_from([_DELETE, _UPDATE, _SEGMENT]),
            st.integers(0, 80),
            st.integers(0, 255),
        ),
    )
)
def test_native_record_when_damaged_then_fails_as_it_should_or_is_read(data: bytes) -> None:
    """Any bytes are read or give one of the two errors; a wrong length allocates no memory."""
    try:
        record = decode_native(data)
    except (CorruptError, UnsupportedError):
        return
    assert topic_of_native(record) is None or len(data) > 20
