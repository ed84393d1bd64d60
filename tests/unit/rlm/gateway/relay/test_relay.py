"""A relayed connection over real sockets: how large answers pass, and how it ends."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

from rlm.gateway.listener.server import GatewayParts
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.session.misdirected_requests import LASTING_MS
from rlm.wire.api.api_versions import API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse
from rlm.wire.api.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from rlm.wire.error_codes import ErrorCode
from tests.log_dir_builder import ManualClock
from tests.unit.rlm.gateway.relay_world import RelayWorld, relay_world
from tests.unit.rlm.gateway.session_world import TOPIC_ID, request, response

_VERSION = 13
_LONG_S = 60.0
_RECORDS = os.urandom(6 << 20)


def _fetch(correlation_id: int) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 24)
    asked = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=(FetchTopic(topic_id=TOPIC_ID, partitions=(partition,)),),
    )
    return request(FETCH, _VERSION, asked, correlation_id)


def _answer(correlation_id: int, records: bytes) -> bytes:
    row = PartitionData(partition_index=0, high_watermark=9, last_stable_offset=9, records=records)
    found = FetchResponse(responses=(FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(row,)),))
    return response(FETCH, _VERSION, found, correlation_id)


def _refusal(correlation_id: int) -> bytes:
    error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    row = PartitionData(partition_index=0, error_code=error_code, high_watermark=-1)
    found = FetchResponse(responses=(FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(row,)),))
    return response(FETCH, _VERSION, found, correlation_id)


def _timed_by(clock: ManualClock, parts: GatewayParts) -> GatewayParts:
    return replace(parts, session=replace(parts.session, clock=clock))


async def _ask(world: RelayWorld, *correlation_ids: int) -> None:
    """Send a request to the broker."""
    for each in correlation_ids:
        world.client.send(_fetch(each))
        await world.broker.receive(len(_fetch(each)))


async def _ask_versions(world: RelayWorld) -> None:
    """Send ApiVersions as a starting client does, and pass on the broker's response."""
    world.client.send(request(API_VERSIONS, 3, ApiVersionsRequest(), 0))
    await world.broker.receive(len(request(API_VERSIONS, 3, ApiVersionsRequest(), 0)))
    world.broker.send(response(API_VERSIONS, 3, ApiVersionsResponse(), 0))
    found = await world.client.receive(4)
    await world.client.receive(int.from_bytes(found, "big"))


def test_large_answers_when_the_client_takes_them_then_it_gets_all_in_order() -> None:
    async def act() -> None:
        async with relay_world() as world:
            await _ask(world, 1, 2, 3)
            answers = [_answer(1, _RECORDS), _answer(2, b"little"), _answer(3, _RECORDS)]

            world.broker.send(b"".join(answers))

            for answer in answers:
                assert await world.client.receive(len(answer)) == answer
            assert world.server._pipes._kept, "nothing went through the kernel"

    asyncio.run(act())


def test_large_answer_when_it_went_through_then_the_next_request_is_answered() -> None:
    async def act() -> None:
        async with relay_world() as world:
            for number in range(3):
                await _ask(world, number)
                world.broker.send(_answer(number, _RECORDS))
                expected = _answer(number, _RECORDS)
                assert await world.client.receive(len(expected)) == expected

    asyncio.run(act())


def test_large_answer_when_the_broker_ends_within_then_the_client_gets_what_came() -> None:
    async def act() -> None:
        async with relay_world() as world:
            await _ask(world, 1)
            part = _answer(1, _RECORDS)[: 3 << 20]
            world.broker.send(part)
            world.broker.writer.close()

            received = await world.client.receive_to_end()

            assert received == part
            assert world.counts.closed == {DisconnectCause.BROKER_CLOSED: 1}

    asyncio.run(act())


def test_large_answer_when_the_client_leaves_within_then_the_broker_is_left_too() -> None:
    async def act() -> None:
        async with relay_world() as world:
            await _ask(world, 1)
            world.broker.send(_answer(1, _RECORDS)[: 3 << 20])
            await world.client.receive(1 << 20)

            world.client.leave()

            assert await world.broker.receive_to_end() == b""
            assert world.counts.closed == {DisconnectCause.CLIENT_LEFT: 1}

    asyncio.run(act())


def test_large_answer_when_the_gateway_stops_within_then_both_connections_end() -> None:
    async def act() -> None:
        async with relay_world() as world:
            await _ask(world, 1)
            world.broker.send(_answer(1, _RECORDS)[: 3 << 20])
            await world.client.receive(1 << 20)

            await world.server.stop()

            assert await world.broker.receive_to_end() == b""
            await world.client.receive_to_end()
            assert world.counts.closed == {DisconnectCause.STOPPING: 1}

    asyncio.run(act())


def test_connection_when_it_is_to_leave_while_its_client_awaits_the_first_answer_then_gets_it() -> (
    None
):
    """If a connection ends before its first response, franz-go takes it as refused and gives up."""

    async def act() -> None:
        async with relay_world() as world:
            await _ask_versions(world)
            (relay,) = world.server._relays.values()
            relay.leave(DisconnectCause.LED_ELSEWHERE, within_s=_LONG_S)
            await _ask(world, 1)
            assert not world.counts.closed

            world.broker.send(_answer(1, b"records"))

            expected = _answer(1, b"records")
            assert await world.client.receive_to_end() == expected
            assert world.counts.closed == {DisconnectCause.LED_ELSEWHERE: 1}

    asyncio.run(act())


def test_connection_when_it_is_to_leave_and_its_client_awaits_nothing_then_ended_at_once() -> None:
    async def act() -> None:
        async with relay_world() as world:
            await _ask(world, 1)
            world.broker.send(_answer(1, _RECORDS))
            await world.client.receive(len(_answer(1, _RECORDS)))
            (relay,) = world.server._relays.values()

            relay.leave(DisconnectCause.LED_ELSEWHERE, within_s=_LONG_S)

            assert world.counts.closed == {DisconnectCause.LED_ELSEWHERE: 1}
            assert await world.client.receive_to_end() == b""

    asyncio.run(act())


def test_connection_when_it_is_to_leave_within_a_large_answer_then_after_its_end() -> None:
    async def act() -> None:
        async with relay_world() as world:
            await _ask(world, 1)
            answer = _answer(1, _RECORDS)
            world.broker.send(answer[: 3 << 20])
            await world.client.receive(1 << 20)
            (relay,) = world.server._relays.values()
            relay.leave(DisconnectCause.LED_ELSEWHERE, within_s=_LONG_S)
            assert not world.counts.closed

            world.broker.send(answer[3 << 20 :])

            assert await world.client.receive_to_end() == answer[1 << 20 :]
            assert world.counts.closed == {DisconnectCause.LED_ELSEWHERE: 1}

    asyncio.run(act())


def test_connection_when_it_is_to_leave_and_its_answer_never_comes_then_ended_in_time() -> None:
    async def act() -> None:
        async with relay_world() as world:
            await _ask(world, 1)
            (relay,) = world.server._relays.values()

            relay.leave(DisconnectCause.LED_ELSEWHERE, within_s=0.1)

            assert await world.client.receive_to_end() == b""
            assert world.counts.closed == {DisconnectCause.LED_ELSEWHERE: 1}

    asyncio.run(act())


def test_connection_when_the_broker_refuses_its_client_for_long_then_ends_after_the_response() -> (
    None
):
    clock = ManualClock()

    async def act() -> None:
        async with relay_world(lambda parts: _timed_by(clock, parts)) as world:
            for number in range(1, 4):
                await _ask(world, number)
                assert not world.counts.closed
                world.broker.send(_refusal(number))
                assert await world.client.receive(len(_refusal(number))) == _refusal(number)
                clock.sleep_ms(LASTING_MS // 2)

            assert await world.client.receive_to_end() == b""
            assert world.counts.closed == {DisconnectCause.LED_ELSEWHERE: 1}

    asyncio.run(act())


def test_first_request_when_it_is_read_before_the_broker_is_connected_then_is_relayed() -> None:
    """Python 3.11.2 reads from the socket although `connection_made` has paused reading."""

    async def act() -> None:
        async with relay_world() as world:
            (relay,) = world.server._relays.values()
            connected, relay._broker = relay._broker, None
            assert connected is not None
            early = request(API_VERSIONS, 3, ApiVersionsRequest(), 0)

            relay.receive_from_client(memoryview(bytearray(early)))
            relay.start(connected)

            assert await world.broker.receive(len(early)) == early

    asyncio.run(act())
