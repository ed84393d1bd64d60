"""The rules of one connection: order, streaming, changed messages, and errors that end it."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.session.session_state import SessionLimits
from rlm.wire.api.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from rlm.wire.api.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from rlm.wire.api.metadata import (
    METADATA,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rlm.wire.api.produce import PRODUCE, ProduceRequest
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import read_response
from tests.unit.rlm.gateway.session_world import GATEWAY, TOPIC_ID, SessionWorld, request, response

_HEARTBEAT = 12


def _opaque_request(correlation_id: int, body: bytes) -> bytes:
    frame = struct.pack(">hhih", _HEARTBEAT, 3, correlation_id, -1) + body
    return struct.pack(">i", len(frame)) + frame


def _opaque_answer(correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


@given(
    bodies=st.lists(st.binary(max_size=300), min_size=1, max_size=8),
    chunks=st.lists(st.integers(min_value=1, max_value=3_000), max_size=40),
    unread=st.booleans(),
)
def test_opaque_frames_when_cut_anywhere_then_pass_unchanged_in_both_directions(
    bodies: list[bytes], chunks: list[int], unread: bool
) -> None:
    world = SessionWorld()
    requests = [_opaque_request(number, body) for number, body in enumerate(bodies)]
    answers = [_opaque_answer(number, body) for number, body in enumerate(bodies)]
    world.client_sends(b"".join(requests), chunks=chunks)
    world.broker_sends(b"".join(answers), chunks=chunks, unread=unread)
    assert world.at_broker() == [each[4:] for each in requests]
    assert world.at_client() == [each[4:] for each in answers]
    assert world.closed is None
    assert world.session.is_idle


def test_opaque_frame_when_only_its_beginning_has_come_then_that_is_passed_on() -> None:
    world = SessionWorld()
    world.client_sends(_opaque_request(1, b""))
    world.broker_sends(_opaque_answer(1, b"x" * 100)[:60])
    assert world.sent_to_client == _opaque_answer(1, b"x" * 100)[:60]


@given(chunks=st.lists(st.integers(min_value=1, max_value=400), max_size=30), unread=st.booleans())
def test_metadata_when_answered_then_leads_to_gateways_wherever_it_is_cut(
    chunks: list[int], unread: bool
) -> None:
    """The response after it arrives whole, although the first one's size has changed."""
    world = SessionWorld()
    world.client_sends(request(METADATA, 12, MetadataRequest(topics=None)), chunks=chunks)
    brokers = (MetadataResponseBroker(node_id=1, host="broker", port=9092),)
    topics = tuple(MetadataResponseTopic(name=f"t-{each}") for each in range(9))
    found = response(METADATA, 12, MetadataResponse(brokers=brokers, topics=topics))
    world.client_sends(_opaque_request(2, b""))
    world.broker_sends(found + _opaque_answer(2, b"x"), chunks=chunks, unread=unread)
    frame, behind = world.at_client()
    _, answer = read_response(METADATA, 12, frame)
    assert [(each.host, each.port) for each in answer.brokers] == [(GATEWAY.host, GATEWAY.port)]
    assert answer.topics == topics
    assert behind == _opaque_answer(2, b"x")[4:]


def test_answers_when_requests_are_pipelined_then_leave_in_order() -> None:
    world = SessionWorld()
    world.client_sends(
        _opaque_request(1, b"a")
        + request(METADATA, 9, MetadataRequest(topics=None), 2)
        + _opaque_request(3, b"b")
    )
    world.broker_sends(
        _opaque_answer(1, b"1")
        + response(METADATA, 9, MetadataResponse(), 2)
        + _opaque_answer(3, b"3")
    )
    assert [struct.unpack_from(">i", each)[0] for each in world.at_client()] == [1, 2, 3]


def test_api_versions_when_too_new_then_is_refused_in_its_turn_without_the_broker() -> None:
    """R17: the gateway answers in version 0, as brokers do."""
    world = SessionWorld()
    unknown = struct.pack(">ihhih", 10, API_VERSIONS.key, 99, 2, -1)
    world.client_sends(_opaque_request(1, b"") + unknown)
    assert len(world.at_broker()) == 1
    assert world.at_client() == []
    world.broker_sends(_opaque_answer(1, b""))
    _, refused = world.at_client()
    header, answer = read_response(API_VERSIONS, 0, refused)
    assert header.correlation_id == 2
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_api_versions_when_the_broker_refuses_then_its_answer_passes() -> None:
    world = SessionWorld()
    world.client_sends(request(API_VERSIONS, 4, ApiVersionsRequest()))
    refusal = response(
        API_VERSIONS,
        0,
        ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=(ApiVersion(api_key=18, min_version=0, max_version=3),),
        ),
    )
    world.broker_sends(refusal)
    assert world.at_client() == [refusal[4:]]


def test_produce_when_it_asks_for_no_answer_then_none_is_waited_for() -> None:
    world = SessionWorld()
    produce = request(PRODUCE, 9, ProduceRequest(acks=0, timeout_ms=1))
    world.client_sends(produce + _opaque_request(2, b""), chunks=[13, 22])
    world.broker_sends(_opaque_answer(2, b""))
    assert len(world.at_broker()) == 2
    assert len(world.at_client()) == 1
    assert world.closed is None


@pytest.mark.parametrize(
    ("topic_id", "tiered", "unconfirmed"),
    [(TOPIC_ID, True, False), (UUID(int=9), False, False), (UUID(int=0), True, True)],
)
def test_exchange_when_it_concerns_a_tiered_topic_then_holds_the_answers_after_it(
    topic_id: UUID, tiered: bool, unconfirmed: bool
) -> None:
    """The gateway changes only the topic that the broker knows by that name now."""
    world = SessionWorld()
    asked = ListOffsetsRequest(
        replica_id=-1,
        topics=(
            ListOffsetsTopic(
                name="orders",
                partitions=(ListOffsetsPartition(partition_index=0, timestamp=-2),),
            ),
        ),
    )
    world.client_sends(request(LIST_OFFSETS, 6, asked, 1) + _opaque_request(2, b""))
    assert len(world.at_broker()) == 3
    row = ListOffsetsPartitionResponse(partition_index=0, offset=100)
    topic = ListOffsetsTopicResponse(name="orders", partitions=(row,))
    found = ListOffsetsResponse(topics=(topic,))
    led = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=7)
    orphan = MetadataResponsePartition(partition_index=1, leader_id=-1, leader_epoch=8)
    described = MetadataResponseTopic(name="orders", topic_id=topic_id, partitions=(led, orphan))
    named = MetadataResponse(topics=(described,))
    ids = response(METADATA, 10, named, -1)
    world.broker_sends(response(LIST_OFFSETS, 6, found, 1) + ids + _opaque_answer(2, b""))
    assert world.session.holds_broker
    assert world.at_client() == []
    (wanted,) = world.rewrites
    assert wanted.exchange.request == asked
    assert wanted.exchange.leader_epochs == {("orders", 0): 7}
    assert (wanted.context.topics.partition("orders", 0) is not None) == tiered
    assert ("orders" in wanted.context.topics.unconfirmed) == unconfirmed
    assert wanted.context.started_ms == world.clock.now_ms
    world.rewritten(ListOffsetsResponse())
    assert len(world.at_client()) == 2
    assert not world.session.holds_broker


def test_client_when_it_pipelines_more_than_the_limit_then_is_held_until_answers_come() -> None:
    world = SessionWorld(limits=SessionLimits(pipelined_count=2))
    world.client_sends(b"".join(_opaque_request(each, b"") for each in range(5)))
    assert len(world.at_broker()) == 2
    assert not world.session.reads_client
    world.broker_sends(_opaque_answer(0, b""))
    assert len(world.at_broker()) == 1
    world.broker_sends(_opaque_answer(1, b"") + _opaque_answer(2, b""))
    assert len(world.at_broker()) == 2
    assert not world.session.reads_client


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (struct.pack(">i", -1), DisconnectCause.MALFORMED_REQUEST),
        (struct.pack(">i", 0), DisconnectCause.MALFORMED_REQUEST),
        (struct.pack(">i", 200_000_000), DisconnectCause.MALFORMED_REQUEST),
        (struct.pack(">ihhih", 10, 1_000, 0, 1, -1), DisconnectCause.UNKNOWN_API),
        (struct.pack(">ihhih", 10, 1, 99, 1, -1), DisconnectCause.UNOFFERED_VERSION),
        (struct.pack(">ihhih", 10, 17, 0, 1, -1), DisconnectCause.UNOFFERED_VERSION),
        (struct.pack(">ihhih", 5_000_000, 1, 12, 1, -1), DisconnectCause.REQUEST_TOO_LARGE),
        (struct.pack(">ihhih", 10, 12, 3, 1, -9), DisconnectCause.MALFORMED_REQUEST),
    ],
)
def test_session_when_a_request_is_not_one_then_ends_and_says_why(
    sent: bytes, reason: DisconnectCause
) -> None:
    world = SessionWorld()
    world.client_sends(sent)
    assert world.closed is not None
    assert world.closed.reason is reason
    assert world.at_broker() == []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(_opaque_answer(9, b""), id="out of order"),
        pytest.param(_opaque_answer(1, b"") * 2, id="not asked for"),
        pytest.param(struct.pack(">ih", 2, 0), id="without a head"),
    ],
)
def test_session_when_the_broker_answers_what_was_not_asked_then_ends(answer: bytes) -> None:
    world = SessionWorld()
    world.client_sends(_opaque_request(1, b""))
    world.broker_sends(answer)
    assert world.closed is not None
    assert world.closed.reason is DisconnectCause.MALFORMED_ANSWER


@given(data=st.binary(max_size=200), chunks=st.lists(st.integers(min_value=1, max_value=200)))
def test_session_when_a_client_sends_anything_then_never_fails_otherwise_than_by_ending(
    data: bytes, chunks: list[int]
) -> None:
    world = SessionWorld()
    world.client_sends(data, chunks=chunks)
    if world.closed is None:
        world.client_sends(struct.pack(">ihhih", 10, 1_000, 0, 1, -1))
