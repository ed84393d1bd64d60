"""The headers of changed messages: all their fields arrive on the other side."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.wire.api.fetch import FETCH, FetchPartition, FetchRequest, FetchResponse, FetchTopic
from rlm.wire.api.find_coordinator import FIND_COORDINATOR, FindCoordinatorResponse
from rlm.wire.api.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rlm.wire.api.metadata import METADATA, MetadataResponse
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import (
    read_request,
    read_response,
)
from tests.unit.rlm.gateway.session_world import (
    TIERED,
    TOPIC_ID,
    SessionWorld,
    request,
    response,
)

_TAGS = ((100, b"new"), (200, b"newer"))
_TRIMMED = {TIERED: RemoteLogBounds(first_stored_offset=0, trimmed_offset=100)}


def _fetch(*, session_id: int = 0, session_epoch: int = -1, by_id: bool = False) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=50, partition_max_bytes=1 << 10)
    topic = FetchTopic(topic_id=TOPIC_ID) if by_id else FetchTopic(topic="orders")
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 10,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=(replace(topic, partitions=(asked,)),),
    )


def test_fetch_when_its_header_has_new_tags_then_the_broker_gets_them() -> None:
    """KIP-482: unknown tags are passed on."""
    world = SessionWorld(facts=_TRIMMED)
    world.client_sends(request(FETCH, 13, _fetch(by_id=True), header_tags=_TAGS))
    *_, sent = world.at_broker()
    header, _ = read_request(FETCH, 13, sent)
    assert (header.unknown_tags, header.client_id) == (_TAGS, "client")


def test_answer_when_its_header_has_new_tags_then_the_client_gets_them() -> None:
    """KIP-482."""
    world = SessionWorld()
    world.client_sends(struct.pack(">ihhih", 10, FIND_COORDINATOR.key, 4, 1, -1))
    world.broker_sends(response(FIND_COORDINATOR, 4, FindCoordinatorResponse(), header_tags=_TAGS))
    (frame,) = world.at_client()
    assert read_response(FIND_COORDINATOR, 4, frame)[0].unknown_tags == _TAGS


def test_answer_when_the_store_was_asked_for_it_then_its_headers_tags_are_the_brokers() -> None:
    """KIP-482."""
    world = SessionWorld(facts=_TRIMMED)
    asked = ListOffsetsTopic(
        name="orders",
        partitions=(ListOffsetsPartition(partition_index=0, timestamp=-2),),
    )
    message = ListOffsetsRequest(replica_id=-1, topics=(asked,))
    world.client_sends(request(LIST_OFFSETS, 7, message))
    world.broker_sends(response(LIST_OFFSETS, 7, ListOffsetsResponse(), header_tags=_TAGS))
    world.broker_sends(response(METADATA, 10, MetadataResponse(), -1))
    world.rewritten(world.rewrites[0].exchange.response)
    (frame,) = world.at_client()
    assert read_response(LIST_OFFSETS, 7, frame)[0].unknown_tags == _TAGS


def test_fetch_when_its_client_id_is_no_utf_8_then_the_broker_gets_it_as_it_came() -> None:
    """Brokers accept any bytes there."""
    world = SessionWorld(facts=_TRIMMED)
    world.client_sends(request(FETCH, 13, _fetch(by_id=True)).replace(b"client", b"cl\xe9ent"))
    *_, sent = world.at_broker()
    assert world.closed is None
    assert sent[8:16] == b"\x00\x06cl\xe9ent"


@pytest.mark.parametrize(
    ("session_id", "session_epoch", "refused"),
    [(0, -1, False), (0, 0, False), (5, 0, False), (5, -1, False), (0, 1, True), (5, 1, True)],
)
def test_fetch_when_it_continues_a_session_then_the_answer_is_that_there_is_none(
    session_id: int, session_epoch: int, *, refused: bool
) -> None:
    """KIP-227: with epoch 0 or -1, a request is a full one."""
    world = SessionWorld()
    message = _fetch(session_id=session_id, session_epoch=session_epoch)
    world.client_sends(request(FETCH, 11, message))
    answers = [read_response(FETCH, 11, frame)[1] for frame in world.at_client()]
    expected = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert answers == ([expected] if refused else [])
    assert len(world.at_broker()) == (0 if refused else 1)
