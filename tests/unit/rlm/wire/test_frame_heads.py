from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.wire.api.produce import PRODUCE, ProduceRequest
from rlm.wire.codec import encode
from rlm.wire.frame_heads import (
    RequestHead,
    read_correlation_id,
    read_produce_acks,
    read_request_head,
)
from rlm.wire.frames import RequestHeader, request_frame
from rsm.segment.errors import CorruptError
from tests.unit.rlm.wire.message_strategies import messages

_HEADERS = st.sampled_from([1, 2]).flatmap(
    lambda version: st.tuples(
        st.just(version), messages(RequestHeader, version, flexible=version > 1)
    )
)
_ACKS = st.sampled_from([-1, 0, 1])


@given(made=_HEADERS, more=st.binary(max_size=20))
def test_request_head_when_read_then_what_was_written(
    made: tuple[int, RequestHeader], more: bytes
) -> None:
    version, header = made
    encoded = encode(header, version, flexible=version > 1)

    head = read_request_head(encoded + more, frame_bytes=len(encoded) + len(more))

    assert head is not None
    assert head[:4] == (
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        header.client_id,
    )
    assert head.end_position == 10 + len((header.client_id or "").encode())


@given(made=_HEADERS, data=st.data())
def test_request_head_when_only_its_beginning_came_then_none(
    made: tuple[int, RequestHeader], data: st.DataObject
) -> None:
    version, header = made
    encoded = encode(header, version, flexible=version > 1)
    head_bytes = 10 + len((header.client_id or "").encode())

    cut = data.draw(st.integers(0, head_bytes - 1))

    assert read_request_head(encoded[:cut], frame_bytes=len(encoded)) is None


@pytest.mark.parametrize(
    ("data", "frame_bytes"),
    [
        (b"", 9),
        (struct.pack(">hhih", 3, 12, 1, 5), 14),
        (struct.pack(">hhih", 3, 12, 1, -2), 100),
        (struct.pack(">hhih", 3, 12, 1, 5) + b"abcdefgh", 14),
    ],
)
def test_request_head_when_frame_cannot_hold_it_then_corrupt(data: bytes, frame_bytes: int) -> None:
    with pytest.raises(CorruptError):
        read_request_head(data, frame_bytes=frame_bytes)


def test_request_head_when_client_id_is_not_utf8_then_read_with_replacements() -> None:
    data = struct.pack(">hhih", 3, 12, 1, 2) + b"a\xff"

    head = read_request_head(data, frame_bytes=len(data))

    assert head == RequestHead(3, 12, 1, "a�", len(data))


@given(
    version=st.integers(PRODUCE.versions.first, PRODUCE.versions.last),
    acks=_ACKS,
    transactional_id=st.none() | st.text(max_size=200),
)
def test_produce_acks_when_read_then_what_was_written_and_none_before(
    version: int, acks: int, transactional_id: str | None
) -> None:
    message = ProduceRequest(transactional_id=transactional_id, acks=acks)
    frame = request_frame(PRODUCE, version, message, correlation_id=1, client_id="c")[4:]
    head = read_request_head(frame, frame_bytes=len(frame))
    assert head is not None

    found = [
        read_produce_acks(frame[:cut], head, frame_bytes=len(frame))
        for cut in range(head.end_position, len(frame) + 1)
    ]

    behind = 4 + (2 if version in PRODUCE.flexible else 4)  # timeout, no topics, tags
    assert found == [None] * (len(found) - behind - 1) + [acks] * (behind + 1)


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_produce_acks_when_of_a_version_without_transactions_then_read_all_the_same(
    version: int, acks: int
) -> None:
    """Brokers before 4.0 have these versions; rlm's tables, from Kafka 4.3, do not."""
    message = struct.pack(">hii", acks, 30_000, 0)
    data = struct.pack(">hhih", PRODUCE.key, version, 1, -1) + message
    head = read_request_head(data, frame_bytes=len(data))
    assert head is not None

    assert read_produce_acks(data, head, frame_bytes=len(data)) == acks
    started = data[: head.end_position + 1]
    assert read_produce_acks(started, head, frame_bytes=len(data)) is None


def test_produce_acks_when_tags_come_without_end_then_corrupt_before_they_are_looked_at() -> None:
    """A head may arrive byte by byte, and each byte starts the reading again."""
    data = struct.pack(">hhih", PRODUCE.key, 9, 1, -1) + b"\xe0\xd4\x03"  # 60,000 tags
    head = read_request_head(data, frame_bytes=1 << 20)
    assert head is not None

    with pytest.raises(CorruptError, match="too many tags"):
        read_produce_acks(data, head, frame_bytes=1 << 20)


@given(garbage=st.binary(max_size=60), version=st.integers(0, 20))
def test_produce_acks_when_garbage_then_corrupt_or_some_number(
    garbage: bytes, version: int
) -> None:
    head = RequestHead(PRODUCE.key, version, 1, None, 0)
    try:
        acks = read_produce_acks(garbage, head, frame_bytes=len(garbage))
    except CorruptError:
        return

    assert isinstance(acks, int)


def test_correlation_id_when_four_bytes_are_there_then_read() -> None:
    assert read_correlation_id(b"\x00\x00\x01") is None
    assert read_correlation_id(b"\x00\x00\x01\x02\x03") == 258
