"""Speculative fetches: a reader's next Fetch, sent to the broker before the reader sends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rlm.gateway.fetch.remote_result import ReadPending, RemoteOutcome
from rlm.gateway.session.session_state import SessionLimits
from rlm.gateway.session.speculative_fetch import MAX_AGE_MS
from rlm.gateway.session.speculative_fetcher import PAUSE_COUNT
from rlm.wire.api.api_versions import API_VERSIONS, ApiVersionsRequest
from rlm.wire.api.fetch import FETCH, FetchRequest, NodeEndpoint, PartitionData
from rlm.wire.api.list_offsets import LIST_OFFSETS
from rlm.wire.api.metadata import METADATA, MetadataRequest, MetadataResponse
from rlm.wire.api.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import read_request, read_response
from tests.unit.rlm.gateway.fetch.fetch_messages import (
    ALL_ENDS,
    TRIMMED,
    answer_of,
    answered,
    bytes_of,
    ends_of,
    fetch_of,
    ids_of,
    local_row,
    out_of_range_row,
    slice_of,
)
from tests.unit.rlm.gateway.session_world import TIERED, SessionWorld, request, response

_AHEAD_ID = -1


def reading_on(version: int = 16, *, next_offset: int = 60) -> SessionWorld:
    """Return a session whose client reads stored data from offset 50 on."""
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, version, fetch_of(version, 50)))
    lacks = response(FETCH, version, answer_of(version, out_of_range_row(0)))
    world.broker_sends(ALL_ENDS + lacks + (b"" if version >= 13 else ids_of()))
    world.at_broker()
    world.store_answers(slice_of(50, next_offset))
    assert bytes_of(answered(world, version)[0]) == f"50-{next_offset}".encode()
    return world


def offsets_asked(world: SessionWorld) -> list[int]:
    """Return the offsets of the Fetches that the broker got since the last call."""
    requests = [read_request(FETCH, 16, frame)[1] for frame in world.at_broker()]
    return [each.topics[0].partitions[0].fetch_offset for each in requests]


def fetches(world: SessionWorld, offset: int, correlation_id: int) -> None:
    world.client_sends(request(FETCH, 16, fetch_of(16, offset), correlation_id))


def announced_ids(world: SessionWorld) -> list[int]:
    return [int.from_bytes(frame[:4], "big") for frame in world.at_client()]


def broker_lacks(world: SessionWorld, correlation_id: int = _AHEAD_ID, count: int = 1) -> None:
    rows = [out_of_range_row(partition) for partition in range(count)]
    world.broker_sends(response(FETCH, 16, answer_of(16, *rows), correlation_id))


def client_asks(world: SessionWorld, asked: FetchRequest | None = None) -> list[bytes]:
    """Return the requests that the broker gets because of the client's Fetch."""
    world.at_broker()
    world.client_sends(request(FETCH, 16, asked or fetch_of(16, 60), 2))
    return world.at_broker()


def test_reader_when_it_was_given_stored_data_then_the_broker_is_asked_for_what_follows() -> None:
    """A speculative fetch has the client's id, so the broker throttles it as the client's own."""
    world = reading_on()

    (frame,) = world.at_broker()

    header, asked = read_request(FETCH, 16, frame)
    assert (header.client_id, header.correlation_id) == ("client", _AHEAD_ID)
    assert asked.topics == fetch_of(16, 60).topics
    assert [each.reads[0].offset for each in world.expected] == [60]


@pytest.mark.parametrize("is_answered", [True, False])
def test_reader_when_it_reads_on_then_the_broker_is_not_asked_again(is_answered: bool) -> None:
    world = reading_on()
    if is_answered:
        broker_lacks(world)

    assert client_asks(world) == []

    if not is_answered:
        broker_lacks(world)
    assert world.reads[-1].reads[0].offset == 60
    world.store_answers(slice_of(60, 70))
    (frame,) = world.at_client()
    header, answer = read_response(FETCH, 16, frame)
    assert header.correlation_id == 2
    assert bytes_of(answer.responses[0].partitions[0]) == b"60-70"
    assert [each.reads[0].offset for each in world.expected] == [60, 70]


@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize(
    "changed",
    [
        lambda _asked: fetch_of(16, 61),
        lambda asked: replace(asked, isolation_level=1),
        lambda asked: replace(asked, max_bytes=5),
    ],
    ids=["another offset", "another isolation", "fewer bytes"],
)
def test_reader_when_it_asks_for_something_else_then_it_is_given_that(
    changed: Callable[[FetchRequest], FetchRequest], is_answered: bool
) -> None:
    """The broker has reported that it does not have that offset, either."""
    world = reading_on()
    asked = changed(fetch_of(16, 60))
    if is_answered:
        broker_lacks(world)

    assert client_asks(world, asked) == []

    assert world.reads[-1].reads[0].offset == asked.topics[0].partitions[0].fetch_offset
    if not is_answered:
        broker_lacks(world)
    world.store_answers(slice_of(60, 70))
    assert announced_ids(world) == [2]
    assert world.closed is None


def test_reader_when_another_client_id_asks_then_it_is_asked_as_that_one() -> None:
    world = reading_on()
    broker_lacks(world)
    world.at_broker()

    world.client_sends(request(FETCH, 16, fetch_of(16, 60), 2, client_id="other"))

    (sent,) = world.at_broker()
    assert read_request(FETCH, 16, sent)[0].client_id == "other"


@pytest.mark.parametrize(
    "row",
    [
        replace(out_of_range_row(0), error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        replace(out_of_range_row(0), error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        local_row(0),
    ],
    ids=["not allowed", "has moved", "is there"],
)
def test_reader_when_the_broker_says_something_else_then_it_is_asked_again(
    row: PartitionData,
) -> None:
    """The broker's answer to the speculative fetch proves nothing about a later request."""
    world = reading_on()
    world.broker_sends(response(FETCH, 16, answer_of(16, row), _AHEAD_ID))

    assert len(client_asks(world)) == 1
    assert world.at_client() == []


@pytest.mark.parametrize("is_answered", [True, False])
def test_reader_when_it_takes_its_time_then_the_broker_is_asked_again(is_answered: bool) -> None:
    """The broker may have revoked the client's right to read meanwhile."""
    world = reading_on()
    if is_answered:
        broker_lacks(world)
    world.clock.now_ms += MAX_AGE_MS + 1

    assert len(client_asks(world)) == 1


def test_reader_when_it_asks_something_between_then_answers_stay_in_order() -> None:
    world = reading_on()
    world.client_sends(request(METADATA, 12, MetadataRequest(topics=()), 2))
    world.client_sends(request(FETCH, 16, fetch_of(16, 60), 3))

    _, _, again = world.at_broker()

    assert read_request(FETCH, 16, again)[0].correlation_id == 3
    broker_lacks(world)
    world.broker_sends(response(METADATA, 12, MetadataResponse(), 2))
    broker_lacks(world, 3)
    world.store_answers(slice_of(60, 70))
    assert announced_ids(world) == [2, 3]


@pytest.mark.parametrize(("most_bytes", "is_asked"), [(5, True), (4, False)])
def test_reader_when_not_all_that_was_read_fits_its_answer_then_nothing_is_asked_ahead(
    most_bytes: int, is_asked: bool
) -> None:
    """The client requests the omitted partition again from its old offset."""
    world = SessionWorld(facts={TIERED: TRIMMED, replace(TIERED, partition=1): TRIMMED})
    (topic,) = fetch_of(16, 50, 50).topics
    small = tuple(replace(each, partition_max_bytes=most_bytes) for each in topic.partitions)
    asked = replace(fetch_of(16, 50, 50), topics=(replace(topic, partitions=small),))
    world.client_sends(request(FETCH, 16, asked))
    rows = out_of_range_row(0), out_of_range_row(1)
    ends = [ends_of(offset, partitions=2) for offset in (100, 490, 500)]
    world.broker_sends(b"".join(ends) + response(FETCH, 16, answer_of(16, *rows)))
    world.at_broker()

    world.store_answers(slice_of(50, 60), slice_of(50, 60))

    assert bool(world.at_broker()) is is_asked


def test_reader_when_its_version_has_names_then_nothing_is_asked_ahead() -> None:
    """The gateway asks for the ids of the names after each such Fetch."""
    assert reading_on(12).at_broker() == []


def test_reader_when_what_follows_is_the_brokers_then_nothing_is_asked_ahead() -> None:
    """Such a Fetch waits for new records, and would delay the client's other requests."""
    assert reading_on(next_offset=100).at_broker() == []


def test_reader_when_it_was_asked_for_in_vain_then_not_for_a_while() -> None:
    world = reading_on()
    client_asks(world, fetch_of(16, 70))
    expected_counts = []
    for number in range(PAUSE_COUNT + 1):
        world.store_answers(slice_of(70, 80))
        expected_counts.append(len(world.expected))
        fetches(world, 70, 3 + number)

    assert expected_counts == [*([1] * PAUSE_COUNT), 2]


@pytest.mark.parametrize(
    "outcome", [ReadPending(), slice_of(60, 60)], ids=["nothing yet", "too large"]
)
def test_reader_when_it_is_given_nothing_then_nothing_is_asked_ahead(
    outcome: RemoteOutcome,
) -> None:
    world = reading_on()
    broker_lacks(world)
    client_asks(world)

    world.store_answers(outcome)

    assert world.at_broker() == []


@pytest.mark.parametrize("cut", [5, 30, 100])
def test_reader_when_it_also_produces_then_nothing_is_asked_within_its_request(cut: int) -> None:
    """A Produce without acks has no response, and passes in the pieces in which it arrives."""
    records = PartitionProduceData(index=0, records=bytes(200))
    topic = TopicProduceData(name="orders", partition_data=(records,))
    asked = ProduceRequest(acks=0, timeout_ms=1, topic_data=(topic,))
    produce = request(PRODUCE, 9, asked, 2)
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, 16, fetch_of(16, 50)) + produce[:cut])
    world.broker_sends(ALL_ENDS + response(FETCH, 16, answer_of(16, out_of_range_row(0))))
    world.at_broker()

    world.store_answers(slice_of(50, 60))
    world.client_sends(produce[cut:])

    sent, *_ = world.at_broker()
    assert sent == produce[4:]


@pytest.mark.parametrize(
    "refused",
    [
        request(FETCH, 16, replace(fetch_of(16, 60), session_id=7, session_epoch=1), 2),
        request(API_VERSIONS, 4, ApiVersionsRequest(), 2).replace(b"\0\x12\0\x04", b"\0\x12\0\x63"),
    ],
    ids=["a session's", "a version that nobody has"],
)
def test_reader_when_the_gateway_refuses_what_it_asks_between_then_answered_after_what_is_owed(
    refused: bytes,
) -> None:
    world = reading_on()
    world.client_sends(refused)

    broker_lacks(world)

    assert announced_ids(world) == [2]
    fetches(world, 60, 3)
    world.store_answers(slice_of(60, 70))
    assert announced_ids(world) == [3]


def test_reader_when_the_ends_of_the_log_grow_old_then_they_are_asked_for_again_before() -> None:
    """Otherwise every reader would have to wait for the ends once a second."""
    world = reading_on()
    broker_lacks(world)
    client_asks(world)
    world.clock.now_ms += SessionLimits().log_ends_age_ms // 2 + 1
    world.store_answers(slice_of(60, 70))

    *ends, speculative = world.at_broker()

    assert [int.from_bytes(frame[:2], "big") for frame in ends] == [LIST_OFFSETS.key] * 3
    assert read_request(FETCH, 16, speculative)[1].topics == fetch_of(16, 70).topics
    world.broker_sends(ends_of(100) + ends_of(495) + ends_of(505))
    broker_lacks(world)
    world.client_sends(request(FETCH, 16, fetch_of(16, 70), 3))
    assert world.at_broker() == []
    world.store_answers(slice_of(70, 80))
    _, frame = world.at_client()
    (row,) = read_response(FETCH, 16, frame)[1].responses[0].partitions
    assert (row.high_watermark, row.last_stable_offset) == (505, 495)


def test_reader_when_the_broker_names_another_leader_then_it_is_asked_again() -> None:
    """Such a hint applies to the client's own request, and leads to the leader's gateway."""
    world = reading_on()
    answer = answer_of(16, out_of_range_row(0))
    answer = replace(answer, node_endpoints=(NodeEndpoint(node_id=1, host="broker", port=9092),))
    world.broker_sends(response(FETCH, 16, answer, _AHEAD_ID))

    assert len(client_asks(world)) == 1


def test_reader_when_its_client_id_is_null_then_it_reads_on_all_the_same() -> None:
    """The request has the expected meaning, but other bytes."""
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, 16, fetch_of(16, 50), client_id=None))
    world.broker_sends(ALL_ENDS + response(FETCH, 16, answer_of(16, out_of_range_row(0))))
    world.store_answers(slice_of(50, 60))
    world.at_broker()

    world.client_sends(request(FETCH, 16, fetch_of(16, 60), 2, client_id=None))

    assert world.at_broker() == []
