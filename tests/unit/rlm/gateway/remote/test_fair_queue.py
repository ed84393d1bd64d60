"""When fetches may read the store: by the quota, by the queue, and in whose turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rlm.gateway.remote.fair_queue import ReadTurn, ReadTurns
from rlm.gateway.remote.fetch_quota import FetchQuota, FetchQuotaSettings
from tests.log_dir_builder import ManualClock

_LONG_MS = 10_000


def _turns(
    *, bytes_per_second: int = 2**63 - 1, place_count: int = 10
) -> tuple[ReadTurns, ManualClock]:
    clock = ManualClock()
    settings = FetchQuotaSettings(
        bytes_per_second=bytes_per_second, window_count=1, window_ms=1_000
    )
    quota = FetchQuota(settings, clock.monotonic_ms())
    return ReadTurns(quota=quota, place_count=place_count, clock=clock), clock


async def _begun(turns: ReadTurns, client: str, expected_bytes: int = 0) -> ReadTurn:
    turn = await turns.turn(client, expected_bytes=expected_bytes, wait_ms=_LONG_MS)
    assert turn is not None
    return turn


async def _settled() -> None:
    """Everything that can go on has gone on."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_turn_when_the_quota_is_used_up_then_none_comes_and_the_wait_is_told() -> None:
    """Scenario 64."""

    async def act() -> None:
        turns, clock = _turns(bytes_per_second=1_000)
        (await _begun(turns, "greedy")).end(1_500)
        assert await turns.turn("other", expected_bytes=1, wait_ms=1) is None
        assert turns.throttle_ms() == 501
        clock.sleep_ms(501)
        (await _begun(turns, "other")).end(0)
        assert (turns.taken_count, turns.waiting_count) == (0, 0)

    asyncio.run(act())


def test_turn_when_what_is_under_way_will_use_up_the_quota_then_waits_for_its_end() -> None:
    """Many at once don't exceed together what each alone would not."""

    async def act() -> None:
        turns, _ = _turns(bytes_per_second=1_000)
        first = await _begun(turns, "first", expected_bytes=1_000)
        second = asyncio.create_task(_begun(turns, "second"))
        await _settled()
        assert turns.waiting_count == 1
        first.end(10)
        (await second).end(0)

    asyncio.run(act())


def test_turn_when_the_queue_is_full_then_waits_for_a_place() -> None:
    """Scenario 60."""

    async def act() -> None:
        turns, _ = _turns(place_count=1)
        first = await _begun(turns, "first")
        assert first.take_place()
        assert not first.take_place()
        first.end(0)
        second = asyncio.create_task(_begun(turns, "second"))
        await _settled()
        assert turns.waiting_count == 1
        turns.give_back_place()
        (await second).end(0)
        assert turns.taken_count == 0

    asyncio.run(act())


def _served(weights: Sequence[int], rounds: int) -> list[int]:
    """What clients got that ask again and again, each for so much, one at a time."""
    served = [0] * len(weights)

    async def client(turns: ReadTurns, number: int) -> None:
        while sum(served) < rounds:
            turn = await _begun(turns, f"client-{number}")
            await asyncio.sleep(0)
            served[number] += weights[number]
            turn.end(weights[number])
            await asyncio.sleep(0)

    async def act() -> None:
        turns, _ = _turns(place_count=1)
        await asyncio.gather(*(client(turns, number) for number in range(len(weights))))

    asyncio.run(act())
    return served


def test_turns_when_fifty_clients_ask_for_different_sizes_then_all_get_the_same() -> None:
    """Scenario 115."""
    served = _served([1 + number % 5 * 10 for number in range(50)], rounds=100_000)
    assert max(served) - min(served) <= 2 * 41


def test_turn_when_its_client_leaves_while_it_waits_then_nothing_of_it_is_kept() -> None:
    """Scenario 59."""

    async def act() -> None:
        turns, _ = _turns(bytes_per_second=1_000)
        first = await _begun(turns, "first", expected_bytes=5_000)
        leaving = asyncio.create_task(turns.turn("left", expected_bytes=1, wait_ms=_LONG_MS))
        await _settled()
        leaving.cancel()
        await _settled()
        assert turns.waiting_count == 0
        first.end(0)
        assert turns.taken_count == 0
        assert turns.throttle_ms() == 0

    asyncio.run(act())


def test_turn_when_its_client_leaves_as_it_comes_then_it_goes_to_the_next() -> None:
    """Scenario 59."""

    async def act() -> None:
        turns, _ = _turns(place_count=1)
        first = await _begun(turns, "first")
        leaving = asyncio.create_task(turns.turn("left", expected_bytes=1, wait_ms=_LONG_MS))
        staying = asyncio.create_task(_begun(turns, "stays"))
        await _settled()
        first.end(0)
        leaving.cancel()
        (await staying).end(0)
        assert (turns.taken_count, turns.waiting_count) == (0, 0)

    asyncio.run(act())


def test_turn_now_when_others_wait_or_there_is_no_place_then_none() -> None:
    """Scenario 60: who needs no store does not overtake who waits."""

    async def act() -> None:
        turns, _ = _turns(place_count=1)
        first = turns.turn_now("first", expected_bytes=10)
        assert first is not None
        assert turns.turn_now("second", expected_bytes=10) is None
        waiting = asyncio.create_task(_begun(turns, "third"))
        await _settled()
        first.end(10)
        assert turns.turn_now("second", expected_bytes=10) is None
        (await waiting).end(0)
        assert turns.taken_count == 0

    asyncio.run(act())
