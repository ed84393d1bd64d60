"""The limits of one fetch: its size, and its wait for a permit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.gateway.fetch.remote_result import ReadThrottled
from rlm.gateway.session.session import Session
from rlm.gateway.session.session_state import SessionLimits
from rlm.wire.api.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from rlm.wire.api.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from rlm.wire.api.produce import PRODUCE, ProduceRequest
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import read_request, read_response
from rsm.segment.ids import TopicIdPartition
from tests.unit.rlm.gateway.session_world import TIERED, TOPIC_ID, SessionWorld, request, response

_VERSION = 13
_TRIMMED = RemoteLogBounds(first_stored_offset=0, trimmed_offset=100)


def _fetch(partition_count: int, *, max_bytes: int = 1 << 20) -> bytes:
    """Return a Fetch whose first partition is below the trimmed offset, the others above."""
    partitions = tuple(
        FetchPartition(
            partition=each, fetch_offset=300 if each else 50, partition_max_bytes=max_bytes
        )
        for each in range(partition_count)
    )
    message = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=(FetchTopic(topic_id=TOPIC_ID, partitions=partitions),),
    )
    return request(FETCH, _VERSION, message)


def _ends() -> bytes:
    answers = b""
    for offset in (100, 490, 500):
        row = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        topic = ListOffsetsTopicResponse(name="orders", partitions=(row,))
        answers += response(LIST_OFFSETS, 4, ListOffsetsResponse(topics=(topic,)), -1)
    return answers


def _row(partition: int, *, records: bytes = b"", error_code: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=error_code,
        high_watermark=500,
        log_start_offset=100,
        records=records,
    )


def _reading(*others: PartitionData, limits: SessionLimits | None = None) -> SessionWorld:
    """Return a session that waits for the store's part; the broker has answered the others."""
    world = SessionWorld(facts={TIERED: _TRIMMED}, limits=limits)
    world.client_sends(_fetch(1 + len(others)))
    rows = (_row(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE), *others)
    found = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=rows)
    world.broker_sends(_ends() + response(FETCH, _VERSION, FetchResponse(responses=(found,))))
    return world


@pytest.mark.parametrize(
    ("others", "permit_wait_ms"),
    [
        pytest.param((), 300, id="nothing else was asked for"),
        pytest.param((_row(1),), 100, id="nothing else is there yet"),
        pytest.param((_row(1, records=b"local"),), 0, id="there are local records"),
        pytest.param((_row(1, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),), 0, id="an error"),
    ],
)
def test_fetch_when_it_may_have_to_wait_for_a_turn_then_not_with_what_the_broker_has(
    others: tuple[PartitionData, ...], permit_wait_ms: int
) -> None:
    """Scenario 64."""
    world = _reading(*others, limits=SessionLimits(remote_wait_ms=300))
    assert (world.reads[0].permit_wait_ms, world.reads[0].max_wait_ms) == (permit_wait_ms, 300)
    assert world.reads[0].client_id == "client"


class _CountingView:
    def __init__(self) -> None:
        self.asked: set[int] = set()

    def facts(self, partition: TopicIdPartition) -> RemoteLogBounds:
        self.asked.add(partition.partition)
        return RemoteLogBounds()


def test_fetch_when_it_names_more_partitions_than_there_are_then_they_are_not_looked_up() -> None:
    """The broker answers that they are unknown, and no client has logged in yet."""
    world, view = SessionWorld(), _CountingView()
    context = world.parts.context()
    topics = replace(context.topics, partition_counts={TOPIC_ID: 3})
    parts = replace(world.parts, context=lambda: replace(context, topics=topics), view=view)
    world.session = Session(parts)

    world.client_sends(_fetch(10_000))

    assert view.asked >= {0, 1, 2}
    assert len(view.asked) < 2_000
    (sent,) = world.at_broker()
    _, message = read_request(FETCH, _VERSION, sent)
    assert len(message.topics[0].partitions) == 10_000


def test_fetch_when_it_is_throttled_then_is_empty_without_an_error_or_a_throttle_time() -> None:
    """Scenario 64: a throttle time would keep the client from its local partitions too."""
    world = _reading(_row(1, records=b"local"))
    world.store_answers(ReadThrottled())
    (frame,) = world.at_client()
    _, answer = read_response(FETCH, _VERSION, frame)
    remote, local = answer.responses[0].partitions
    assert answer.throttle_time_ms == 0
    assert (remote.error_code, remote.records, remote.high_watermark) == (0, b"", 500)
    assert local.records == b"local"


def test_fetch_when_a_part_is_remote_then_the_broker_is_asked_for_little_of_the_others() -> None:
    """The broker's part is buffered until the store answers, in addition to that read's budget."""
    world = SessionWorld(facts={TIERED: _TRIMMED})
    world.client_sends(_fetch(8, max_bytes=50 << 20))
    *_, sent = world.at_broker()
    _, message = read_request(FETCH, _VERSION, sent)
    assert message.max_bytes == 1 << 20


def test_fetch_when_it_asks_for_more_than_a_fetch_may_get_then_asks_for_that() -> None:
    world = SessionWorld(facts={TIERED: _TRIMMED}, limits=SessionLimits(fetch_max_bytes=10_000))
    world.client_sends(_fetch(1, max_bytes=1 << 30))
    *_, sent = world.at_broker()
    _, message = read_request(FETCH, _VERSION, sent)
    assert message.max_bytes <= 10_000
    found = FetchableTopicResponse(
        topic_id=TOPIC_ID, partitions=(_row(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE),)
    )
    world.broker_sends(_ends() + response(FETCH, _VERSION, FetchResponse(responses=(found,))))
    assert world.reads[0].reads[0].max_bytes == 10_000


def test_requests_when_the_client_has_not_taken_its_answer_then_are_started_once_it_has() -> None:
    """Scenario 115: each further response would occupy memory that others need."""
    world = SessionWorld(facts={TIERED: _TRIMMED})
    world.session.set_client_full(is_full=True)
    world.client_sends(_fetch(1) + _fetch(1))

    assert world.at_broker() == []
    assert world.session.holds_client
    world.session.set_client_full(is_full=False)
    world.goes_on()

    assert len(world.at_broker()) == 4  # one request; the other one waits for its response
    assert world.session.holds_client


def test_request_when_it_comes_in_pieces_then_continues_though_the_client_has_yet_to_take() -> None:
    """The broker bounds what a client sends before it receives a response."""
    world = SessionWorld()
    produced = request(PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=1))
    world.client_sends(produced[:-1])
    world.session.set_client_full(is_full=True)

    world.client_sends(produced[-1:])

    assert world.at_broker() == [produced[4:]]
