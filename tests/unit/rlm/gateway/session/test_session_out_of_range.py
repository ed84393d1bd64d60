"""Fetches that are answered from the out-of-range cache without the broker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.gateway.session.session_state import SessionLimits
from rlm.wire.api.fetch import FETCH, FetchRequest, FetchResponse, NodeEndpoint, PartitionData
from rlm.wire.api.list_offsets import LIST_OFFSETS
from rlm.wire.api.metadata import METADATA, MetadataRequest, MetadataResponse
from rlm.wire.api.sasl_authenticate import (
    SASL_AUTHENTICATE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from rlm.wire.api.sasl_handshake import (
    SASL_HANDSHAKE,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import read_request, read_response
from tests.unit.rlm.gateway.fetch.fetch_messages import (
    ALL_ENDS,
    TRIMMED,
    answer_of,
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
_AGE_MS = SessionLimits().cached_response_max_age_ms
_LACKS = answer_of(16, out_of_range_row(0))


def cached(
    asked: FetchRequest | None = None,
    answer: FetchResponse = _LACKS,
    version: int = 16,
    ends: bytes = ALL_ENDS,
    facts: RemoteLogBounds = TRIMMED,
    limits: SessionLimits | None = None,
    *,
    is_logged_in: bool = False,
) -> SessionWorld:
    """Return a session whose broker reported that it lacks offset 50; no request is in flight."""
    world = SessionWorld(facts={TIERED: facts, replace(TIERED, partition=1): facts}, limits=limits)
    if is_logged_in:
        logs_in(world)
    world.client_sends(request(FETCH, version, asked or fetch_of(version, 50)))
    world.broker_sends(
        ends + response(FETCH, version, answer) + (b"" if version >= 13 else ids_of())
    )
    world.store_answers(*(slice_of(50, 50) for _ in world.reads[-1].reads))
    world.at_broker()
    world.at_client()
    return world


def logs_in(world: SessionWorld) -> None:
    world.client_sends(request(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN")))
    world.broker_sends(response(SASL_HANDSHAKE, 1, SaslHandshakeResponse()))
    world.client_sends(request(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest()))
    world.broker_sends(response(SASL_AUTHENTICATE, 2, SaslAuthenticateResponse()))


def asked_after(
    world: SessionWorld, asked: FetchRequest, version: int = 16, client_id: str = "client"
) -> int:
    """Return the number of requests that the broker gets for one more Fetch."""
    world.client_sends(request(FETCH, version, asked, 2, client_id=client_id))
    return len(world.at_broker())


def with_partition(**changes: object) -> FetchRequest:
    """Return a Fetch of offset 60, with these changes of its partition."""
    asked = fetch_of(16, 60)
    (topic,) = asked.topics
    partition = replace(topic.partitions[0], **changes)  # type: ignore[arg-type]  # any field's
    return replace(asked, topics=(replace(topic, partitions=(partition,)),))


@pytest.mark.parametrize("offset", [0, 49, 50, 51, 99])
def test_fetch_when_the_broker_lacked_another_offset_then_it_is_not_asked(offset: int) -> None:
    """The broker has no offset below the start of its log."""
    world = cached()
    world.clock.now_ms += _AGE_MS

    assert asked_after(world, fetch_of(16, offset)) == 0

    assert world.reads[-1].reads[0].offset == offset
    world.store_answers(slice_of(offset, offset + 10))
    (frame,) = world.at_client()
    header, answer = read_response(FETCH, 16, frame)
    (row,) = answer.responses[0].partitions
    assert (header.correlation_id, answer.session_id, answer.throttle_time_ms) == (2, 0, 0)
    assert (row.high_watermark, row.last_stable_offset, row.log_start_offset) == (500, 490, 0)
    assert bytes_of(row) == f"{offset}-{offset + 10}".encode()


def test_fetch_when_the_broker_said_it_too_long_ago_then_it_is_asked() -> None:
    """The client may have lost its right to read since then."""
    world = cached()
    world.clock.now_ms += _AGE_MS + 1

    assert asked_after(world, fetch_of(16, 60)) == 1


@pytest.mark.parametrize(
    ("limits", "is_logged_in", "asked_count"),
    [
        (SessionLimits(), True, 1),
        (SessionLimits(logged_in_cached_response_max_age_ms=1), True, 0),
        (SessionLimits(cached_response_max_age_ms=0), False, 1),
        (
            SessionLimits(logged_in_cached_response_max_age_ms=1, cached_response_max_age_ms=0),
            False,
            1,
        ),
    ],
)
def test_fetch_when_each_is_to_be_authorized_then_the_broker_is_asked(
    limits: SessionLimits, asked_count: int, *, is_logged_in: bool
) -> None:
    """That is the default on listeners with SASL."""
    world = cached(limits=limits, is_logged_in=is_logged_in)

    assert asked_after(world, fetch_of(16, 60)) == asked_count


@pytest.mark.parametrize(("offset", "asked_count"), [(54, 0), (55, 1)])
def test_fetch_when_the_brokers_log_starts_below_what_was_trimmed_then_it_is_asked_from_there(
    offset: int, asked_count: int
) -> None:
    world = cached(ends=ends_of(55) + ends_of(490) + ends_of(500))

    assert asked_after(world, fetch_of(16, offset)) == asked_count


@pytest.mark.parametrize(
    ("asked", "client_id"),
    [
        (with_partition(), "other"),
        (replace(with_partition(), rack_id="rack-1"), "client"),
        (with_partition(current_leader_epoch=3), "client"),
        (with_partition(partition=1), "client"),
        (fetch_of(16, 60, 60), "client"),
        (fetch_of(16, 100), "client"),
    ],
    ids=["client", "rack", "leader epoch", "partition", "one more partition", "the broker's"],
)
def test_fetch_when_the_broker_might_say_something_else_then_it_is_asked(
    asked: FetchRequest, client_id: str
) -> None:
    assert asked_after(cached(), asked, client_id=client_id) >= 1


def test_fetch_when_it_has_names_then_the_broker_is_asked() -> None:
    """The gateway asks for the meaning of the names after each Fetch."""
    world = cached(version=12, answer=answer_of(12, out_of_range_row(0)))

    assert asked_after(world, fetch_of(12, 60), version=12) == 2


@pytest.mark.parametrize(
    "more",
    [{"throttle_time_ms": 5}, {"node_endpoints": (NodeEndpoint(node_id=1, host="b", port=1),)}],
    ids=["throttled", "another leader"],
)
def test_fetch_when_the_broker_said_more_than_that_then_it_is_asked(
    more: dict[str, object],
) -> None:
    world = cached(answer=replace(_LACKS, **more))  # type: ignore[arg-type]  # any field's

    assert asked_after(world, fetch_of(16, 60)) == 1


@pytest.mark.parametrize(
    "row",
    [
        replace(out_of_range_row(0), error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        replace(out_of_range_row(0), error_code=ErrorCode.FENCED_LEADER_EPOCH),
        local_row(0),
    ],
    ids=["not allowed", "has moved", "is there"],
)
def test_fetch_when_the_broker_said_something_else_since_then_it_is_asked(
    row: PartitionData,
) -> None:
    """This includes the response to a speculative fetch that no client used."""
    world = cached()
    world.client_sends(request(FETCH, 16, fetch_of(16, 60), 2))
    world.clock.now_ms += _AGE_MS // 2
    world.store_answers(slice_of(60, 70))  # the gateway then sends a speculative fetch
    assert asked_after(world, fetch_of(16, 20)) == 1
    world.store_answers(slice_of(20, 30))

    world.broker_sends(response(FETCH, 16, answer_of(16, row), _AHEAD_ID))

    assert asked_after(world, fetch_of(16, 40)) == 1


def test_fetch_when_something_else_is_owed_then_it_waits_for_its_turn() -> None:
    world = cached()
    world.client_sends(request(METADATA, 12, MetadataRequest(topics=()), 2))

    world.client_sends(request(FETCH, 16, fetch_of(16, 60), 3))

    assert len(world.at_broker()) == 2
    world.broker_sends(
        response(METADATA, 12, MetadataResponse(), 2) + response(FETCH, 16, _LACKS, 3)
    )
    world.store_answers(slice_of(60, 70))
    assert [int.from_bytes(frame[:4], "big") for frame in world.at_client()] == [2, 3]


def test_fetch_when_its_partitions_change_places_then_the_broker_is_not_asked() -> None:
    """A consumer reorders its partitions each time it receives records of one."""
    ends = b"".join(ends_of(offset, partitions=2) for offset in (100, 490, 500))
    rows = out_of_range_row(0), out_of_range_row(1)
    world = cached(fetch_of(16, 50, 70), answer_of(16, *rows), ends=ends)
    asked = fetch_of(16, 50, 80)
    (topic,) = asked.topics
    turned = replace(asked, topics=(replace(topic, partitions=topic.partitions[::-1]),))

    assert asked_after(world, turned) == 0

    assert [each.offset for each in world.reads[-1].reads] == [80, 50]
    world.store_answers(slice_of(80, 90), slice_of(50, 60))
    (frame,) = world.at_client()
    found = read_response(FETCH, 16, frame)[1].responses[0].partitions
    assert [(row.partition_index, bytes_of(row)) for row in found] == [(1, b"80-90"), (0, b"50-60")]


@pytest.mark.parametrize(
    ("age_ms", "cycle_ms", "least", "most"),
    [(100, 1, 1, 2), (100, 10, 2, 4), (100, 60, 20, 20), (40, 10, 6, 12), (0, 1, 20, 20)],
)
def test_reader_when_it_reads_on_then_the_broker_is_asked_as_often_as_its_answer_counts(
    age_ms: int, cycle_ms: int, least: int, most: int
) -> None:
    """The gateway renews the answer early, but not for a reader whose next fetch comes at once."""
    world = SessionWorld(
        facts={TIERED: RemoteLogBounds(first_stored_offset=0, trimmed_offset=10_000)},
        limits=SessionLimits(cached_response_max_age_ms=age_ms),
    )
    world.client_sends(request(FETCH, 16, fetch_of(16, 50)))
    ends = ends_of(10_000) + ends_of(10_000) + ends_of(10_000)
    world.broker_sends(ends + response(FETCH, 16, _LACKS))
    world.at_broker()
    asked_count = 0
    for number in range(20):
        world.store_answers(slice_of(50 + 10 * number, 60 + 10 * number))
        for frame in world.at_broker():
            if int.from_bytes(frame[:2], "big") == LIST_OFFSETS.key:
                world.broker_sends(ends_of(10_000))
                continue
            header, _ = read_request(FETCH, 16, frame)
            assert header.correlation_id == _AHEAD_ID
            asked_count += 1
            world.broker_sends(response(FETCH, 16, _LACKS, _AHEAD_ID))
        world.clock.now_ms += cycle_ms
        world.client_sends(request(FETCH, 16, fetch_of(16, 60 + 10 * number), 2 + number))
        assert world.at_broker() == []

    assert least <= asked_count <= most
