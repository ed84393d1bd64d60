from __future__ import annotations

from typing import Any

import pytest

from rlm.gateway.session.misdirected_requests import (
    LASTING_MS,
    MisdirectedRequests,
    first_error_code,
)
from rlm.wire.api.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from rlm.wire.api.fetch import FETCH, FetchableTopicResponse, FetchResponse, PartitionData
from rlm.wire.api.produce import (
    PRODUCE,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import SIZE_BYTES, request_frame, response_parts
from rlm.wire.schema import Api, Message
from tests.unit.rlm.gateway.session_world import TOPIC_ID, SessionWorld

_REFUSED = ErrorCode.NOT_LEADER_OR_FOLLOWER
_PRODUCE_KEY = PRODUCE.key
_HEARTBEAT_KEY = 12
_TOPIC_IDS_FROM = 13


def _produced(version: int, *error_codes: int) -> ProduceResponse:
    partitions = tuple(
        PartitionProduceResponse(index=index, error_code=code, base_offset=-1)
        for index, code in enumerate(error_codes)
    )
    named = {"topic_id": TOPIC_ID} if version >= _TOPIC_IDS_FROM else {"name": "orders"}
    topic = TopicProduceResponse(partition_responses=partitions, **named)
    return ProduceResponse(responses=(topic,))


def _frame(api: Api[Any, Any], version: int, response: Message) -> bytes:
    parts = response_parts(api, version, response, correlation_id=1)
    return b"".join(bytes(part) for part in parts)


def _deleted(error_code: int) -> DeleteRecordsResponse:
    partition = DeleteRecordsPartitionResult(
        partition_index=0, low_watermark=-1, error_code=error_code
    )
    topic = DeleteRecordsTopicResult(name="orders", partitions=(partition,))
    return DeleteRecordsResponse(topics=(topic,))


@pytest.mark.parametrize("version", range(PRODUCE.versions.first, PRODUCE.versions.last + 1))
def test_error_code_when_a_response_arrives_in_pieces_then_is_read_once_it_is_there(
    version: int,
) -> None:
    frame = memoryview(_frame(PRODUCE, version, _produced(version, _REFUSED, 0)))[SIZE_BYTES:]

    found = [
        first_error_code(_PRODUCE_KEY, version, frame[:count], frame_bytes=len(frame))
        for count in range(len(frame) + 1)
    ]

    first = found.index(_REFUSED)
    assert found == [None] * first + [_REFUSED] * (len(frame) + 1 - first)


@pytest.mark.parametrize("response", [ProduceResponse(responses=()), _produced(9)])
def test_error_code_when_no_partition_was_asked_for_then_there_is_none(
    response: ProduceResponse,
) -> None:
    frame = memoryview(_frame(PRODUCE, 9, response))[SIZE_BYTES:]

    assert first_error_code(_PRODUCE_KEY, 9, frame, frame_bytes=len(frame)) == ErrorCode.NONE


@pytest.mark.parametrize("content", [b"\0\0\0\1", b"\0\0\0\1\1", b"\0\0\0\1\0\0\0\0\0"])
def test_error_code_when_a_response_is_too_short_then_there_is_none(content: bytes) -> None:
    """The client gets the broker's bytes unchanged, and rejects them itself."""
    found = first_error_code(_HEARTBEAT_KEY, 4, memoryview(content), frame_bytes=len(content))

    assert found == ErrorCode.NONE


def test_misdirected_when_refusals_last_then_after_that_time() -> None:
    requests = MisdirectedRequests()

    found = [requests.record(_REFUSED, now_ms) for now_ms in range(0, LASTING_MS + 1, 1_000)]

    assert found == [False] * 10 + [True]


def test_misdirected_when_refusals_end_then_later_ones_are_no_part_of_them() -> None:
    """After an election, a few responses show each client that its broker no longer leads."""
    requests = MisdirectedRequests()

    found = [requests.record(_REFUSED, number * LASTING_MS) for number in range(5)]

    assert not any(found)


def test_misdirected_when_other_errors_last_then_never() -> None:
    requests = MisdirectedRequests()
    others = (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT)

    assert not any(
        requests.record(code, now_ms) for code in others for now_ms in range(0, 60_000, 1_000)
    )


def _exchange(world: SessionWorld, request: bytes, response: bytes) -> None:
    world.client_sends(request)
    world.broker_sends(response, chunks=range(0, len(response), 3))
    assert world.at_client() != []


def _head_only(api_key: int, version: int, *, flexible: bool) -> bytes:
    """Return a request of which the gateway reads only the head."""
    tags = b"\0" if flexible else b""
    content = b"".join(
        (
            api_key.to_bytes(2, "big"),
            version.to_bytes(2, "big"),
            (1).to_bytes(4, "big"),
            (-1).to_bytes(2, "big", signed=True),
            tags,
        )
    )
    return len(content).to_bytes(SIZE_BYTES, "big") + content


def _heartbeat() -> tuple[bytes, bytes]:
    content = (1).to_bytes(4, "big") + b"\0" + bytes(4) + ErrorCode.NOT_COORDINATOR.to_bytes(2)
    response = len(content + b"\0").to_bytes(SIZE_BYTES, "big") + content + b"\0"
    return _head_only(_HEARTBEAT_KEY, 4, flexible=True), response


def _produce(version: int) -> tuple[bytes, bytes]:
    request = PRODUCE.request(acks=-1, timeout_ms=1, topic_data=())
    return (
        request_frame(PRODUCE, version, request, correlation_id=1, client_id="c"),
        _frame(PRODUCE, version, _produced(version, _REFUSED)),
    )


def _fetch(version: int) -> tuple[bytes, bytes]:
    request = FETCH.request(max_wait_ms=1, min_bytes=1, topics=())
    fine = PartitionData(partition_index=0, error_code=0, high_watermark=1)
    refused = PartitionData(partition_index=1, error_code=_REFUSED, high_watermark=-1)
    named = {"topic_id": TOPIC_ID} if version >= _TOPIC_IDS_FROM else {"topic": "orders"}
    topic = FetchableTopicResponse(partitions=(fine, refused), **named)
    return (
        request_frame(FETCH, version, request, correlation_id=1, client_id="c"),
        _frame(FETCH, version, FetchResponse(responses=(topic,))),
    )


@pytest.mark.parametrize(
    ("request_", "response"),
    [_produce(9), _produce(12), _fetch(4), _fetch(17), _heartbeat()],
    ids=["old produce", "produce", "old fetch", "fetch", "heartbeat"],
)
def test_session_when_the_broker_refuses_its_client_for_long_then_is_misdirected(
    request_: bytes, response: bytes
) -> None:
    world = SessionWorld()
    found = []
    for _ in range(3):
        _exchange(world, request_, response)
        found.append(world.session.is_misdirected)
        world.clock.sleep_ms(LASTING_MS // 2)

    assert found == [False, False, True]
    assert world.session.may_end


def test_session_when_the_broker_serves_its_client_then_is_not_misdirected() -> None:
    world = SessionWorld()
    request, _ = _produce(12)
    for _ in range(5):
        _exchange(world, request, _frame(PRODUCE, 12, _produced(12, 0)))
        world.clock.sleep_ms(LASTING_MS // 2)

    assert not world.session.is_misdirected


def test_deletions_when_refused_then_their_code_is_after_the_low_watermark() -> None:
    frame = memoryview(_frame(DELETE_RECORDS, 2, _deleted(_REFUSED)))[SIZE_BYTES:]

    found = first_error_code(DELETE_RECORDS.key, 2, frame, frame_bytes=len(frame))

    assert found == _REFUSED
