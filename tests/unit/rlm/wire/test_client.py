from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.wire.api.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from rlm.wire.api.list_offsets import LIST_OFFSETS, ListOffsetsRequest, ListOffsetsResponse
from rlm.wire.client import ProtocolClient
from rlm.wire.codec import decode_prefix, encode
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import RequestHeader, ResponseHeader
from rlm.wire.schema import Message
from rsm.segment.errors import CorruptError, UnsupportedError

_LIMIT_BYTES = 10_000


def _client() -> ProtocolClient:
    return ProtocolClient(client_id="test", max_response_bytes=_LIMIT_BYTES)


def _versions(*rows: tuple[int, int, int], error_code: int = 0) -> ApiVersionsResponse:
    keys = tuple(ApiVersion(api_key=k, min_version=a, max_version=b) for k, a, b in rows)
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


def _learnt(*rows: tuple[int, int, int]) -> ProtocolClient:
    client = _client()
    client.hello()
    client.receive(_framed(0, _versions(*rows), version=4, flexible=True, header_version=0))
    response = client.next_response()
    assert isinstance(response, ApiVersionsResponse)
    assert client.learn(response) is None
    return client


def _framed(
    correlation_id: int, message: Message, *, version: int, flexible: bool, header_version: int
) -> bytes:
    header = ResponseHeader(correlation_id=correlation_id)
    head = encode(header, header_version, flexible=header_version > 0)
    body = encode(message, version, flexible=flexible)
    return struct.pack(">i", len(head) + len(body)) + head + body


def _header_of(frame: bytes, *, header_version: int) -> RequestHeader:
    assert struct.unpack(">i", frame[:4]) == (len(frame) - 4,)
    flexible = header_version > 1
    header, _ = decode_prefix(RequestHeader, header_version, frame[4:], flexible=flexible)
    return header


def test_hello_when_connection_is_new_then_newest_api_versions() -> None:
    header = _header_of(_client().hello(), header_version=2)

    assert header.request_api_key == API_VERSIONS.key
    assert header.request_api_version == 4
    assert header.client_id == "test"


def test_hello_when_broker_is_older_then_asked_again_in_its_version() -> None:
    client = _client()
    client.hello()
    refusal = _versions((18, 0, 2), error_code=ErrorCode.UNSUPPORTED_VERSION)
    client.receive(_framed(0, refusal, version=0, flexible=False, header_version=0))
    response = client.next_response()
    assert isinstance(response, ApiVersionsResponse)

    again = client.learn(response)

    assert again is not None
    assert _header_of(again, header_version=1).request_api_version == 2


def test_hello_when_broker_refuses_what_it_offers_then_unsupported() -> None:
    client = _client()

    with pytest.raises(UnsupportedError):
        client.learn(_versions((18, 0, 4), error_code=ErrorCode.UNSUPPORTED_VERSION))


@pytest.mark.parametrize(
    ("broker", "expected"), [((2, 0, 3), 3), ((2, 1, 11), 11), ((2, 5, 99), 11), ((2, 1, 1), 1)]
)
def test_version_when_both_overlap_then_newest_of_both(
    broker: tuple[int, int, int], expected: int
) -> None:
    assert _learnt(broker).version_of(LIST_OFFSETS) == expected


@pytest.mark.parametrize("broker", [(2, 12, 15), (2, 0, 0), (2, 0, 3), (3, 0, 13)])
def test_version_when_none_is_shared_or_new_enough_then_unsupported(
    broker: tuple[int, int, int],
) -> None:
    with pytest.raises(UnsupportedError):
        _learnt(broker).version_of(LIST_OFFSETS, at_least=4)


def test_request_when_versions_are_not_known_then_unsupported() -> None:
    with pytest.raises(UnsupportedError):
        _client().request(LIST_OFFSETS, ListOffsetsRequest(replica_id=-1))


@given(cuts=st.lists(st.integers(1, 30), max_size=8))
def test_responses_when_they_come_in_any_pieces_then_whole_and_in_order(cuts: list[int]) -> None:
    client = _learnt((2, 1, 11))
    sent = [ListOffsetsResponse(throttle_time_ms=each) for each in (7, 8)]
    data = b""
    for correlation_id, response in enumerate(sent, start=1):
        client.request(LIST_OFFSETS, ListOffsetsRequest(replica_id=-1))
        data += _framed(correlation_id, response, version=11, flexible=True, header_version=1)

    received = []
    for cut in [*cuts, len(data)]:
        client.receive(data[:cut])
        data = data[cut:]
        while (response_or_none := client.next_response()) is not None:
            received.append(response_or_none)

    assert received == sent


def test_response_when_it_is_of_another_request_then_corrupt() -> None:
    client = _learnt((2, 1, 11))
    client.request(LIST_OFFSETS, ListOffsetsRequest(replica_id=-1))
    client.receive(_framed(5, ListOffsetsResponse(), version=11, flexible=True, header_version=1))

    with pytest.raises(CorruptError):
        client.next_response()


def test_response_when_not_asked_for_then_corrupt() -> None:
    client = _learnt((2, 1, 11))
    client.receive(_framed(1, ListOffsetsResponse(), version=11, flexible=True, header_version=1))

    with pytest.raises(CorruptError):
        client.next_response()


@pytest.mark.parametrize("size", [-1, _LIMIT_BYTES + 1, 2**31 - 1, 0x48545450])
def test_response_when_its_size_is_out_of_bounds_then_corrupt_at_once(size: int) -> None:
    client = _client()
    client.hello()
    client.receive(struct.pack(">i", size))

    with pytest.raises(CorruptError):
        client.next_response()


@given(garbage=st.binary(max_size=80))
def test_response_when_garbage_then_corrupt(garbage: bytes) -> None:
    client = _learnt((2, 1, 11))
    client.request(LIST_OFFSETS, ListOffsetsRequest(replica_id=-1))
    client.receive(struct.pack(">i", len(garbage) + 4) + b"\xff\xff\xff\xff" + garbage)

    with pytest.raises(CorruptError):
        client.next_response()
