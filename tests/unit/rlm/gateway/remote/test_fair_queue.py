"""When fetches may read the store: by the quota, by the queue, and in fair order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from rlm.gateway.remote.fair_queue import FairQueueTags, ReadPermit, ReadPermits
from rlm.gateway.remote.fetch_quota import FetchQuota, FetchQuotaSettings
from tests.log_dir_builder import ManualClock

_LONG_MS = 10_000


def _permits(
    *, bytes_per_second: int = 2**63 - 1, slot_count: int = 10
) -> tuple[ReadPermits, ManualClock]:
    clock = ManualClock()
    settings = FetchQuotaSettings(
        bytes_per_second=bytes_per_second, window_count=1, window_ms=1_000
    )
    quota = FetchQuota(settings, clock.monotonic_ms())
    return ReadPermits(quota=quota, slot_count=slot_count, clock=clock), clock


async def _started(permits: ReadPermits, client: str, expected_bytes: int = 0) -> ReadPermit:
    permit = await permits.acquire(client, expected_bytes=expected_bytes, wait_ms=_LONG_MS)
    assert permit is not None
    return permit


async def _settled() -> None:
    """Run until nothing more can continue."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_permit_when_the_quota_is_used_up_then_none_comes_and_the_wait_is_reported() -> None:
    """Scenario 64."""

    async def act() -> None:
        permits, clock = _permits(bytes_per_second=1_000)
        (await _started(permits, "greedy")).end(1_500)
        assert await permits.acquire("other", expected_bytes=1, wait_ms=1) is None
        assert permits.throttle_ms() == 501
        clock.sleep_ms(501)
        (await _started(permits, "other")).end(0)
        assert (permits.taken_count, permits.waiting_count) == (0, 0)

    asyncio.run(act())


def test_turn_when_what_is_under_way_will_use_up_the_quota_then_waits_for_its_end() -> None:
    """Many fetches at once do not exceed the quota together."""

    async def act() -> None:
        permits, _ = _permits(bytes_per_second=1_000)
        first = await _started(permits, "first", expected_bytes=1_000)
        second = asyncio.create_task(_started(permits, "second"))
        await _settled()
        assert permits.waiting_count == 1
        first.end(10)
        (await second).end(0)

    asyncio.run(act())


def test_turn_when_the_queue_is_full_then_waits_for_a_place() -> None:
    """Scenario 60."""

    async def act() -> None:
        permits, _ = _permits(slot_count=1)
        first = await _started(permits, "first")
        assert first.take_slot()
        assert not first.take_slot()
        first.end(0)
        second = asyncio.create_task(_started(permits, "second"))
        await _settled()
        assert permits.waiting_count == 1
        permits.return_slot()
        (await second).end(0)
        assert permits.taken_count == 0

    asyncio.run(act())


def _served(weights: Sequence[int], rounds: int) -> list[int]:
    """Return the bytes of clients that request a fixed size again and again, one at a time."""
    served = [0] * len(weights)

    async def client(permits: ReadPermits, number: int) -> None:
        while sum(served) < rounds:
            permit = await _started(permits, f"client-{number}")
            await asyncio.sleep(0)
            served[number] += weights[number]
            permit.end(weights[number])
            await asyncio.sleep(0)

    async def act() -> None:
        permits, _ = _permits(slot_count=1)
        await asyncio.gather(*(client(permits, number) for number in range(len(weights))))

    asyncio.run(act())
    return served


def test_turns_when_fifty_clients_ask_for_different_sizes_then_all_get_the_same() -> None:
    """Scenario 115."""
    served = _served([1 + number % 5 * 10 for number in range(50)], rounds=100_000)
    assert max(served) - min(served) <= 2 * 41


def test_turn_when_its_client_leaves_while_it_waits_then_nothing_of_it_is_kept() -> None:
    """Scenario 59."""

    async def act() -> None:
        permits, _ = _permits(bytes_per_second=1_000)
        first = await _started(permits, "first", expected_bytes=5_000)
        leaving = asyncio.create_task(permits.acquire("left", expected_bytes=1, wait_ms=_LONG_MS))
        await _settled()
        leaving.cancel()
        await _settled()
        assert permits.waiting_count == 0
        first.end(0)
        assert permits.taken_count == 0
        assert permits.throttle_ms() == 0

    asyncio.run(act())


def test_permit_when_its_client_leaves_as_it_comes_then_the_next_gets_it() -> None:
    """Scenario 59."""

    async def act() -> None:
        permits, _ = _permits(slot_count=1)
        first = await _started(permits, "first")
        leaving = asyncio.create_task(permits.acquire("left", expected_bytes=1, wait_ms=_LONG_MS))
        staying = asyncio.create_task(_started(permits, "stays"))
        await _settled()
        first.end(0)
        leaving.cancel()
        (await staying).end(0)
        assert (permits.taken_count, permits.waiting_count) == (0, 0)

    asyncio.run(act())


def test_turn_now_when_others_wait_or_there_is_no_place_then_none() -> None:
    """Scenario 60: a fetch without stored data does not overtake one that waits."""

    async def act() -> None:
        permits, _ = _permits(slot_count=1)
        first = permits.acquire_now("first", expected_bytes=10)
        assert first is not None
        assert permits.acquire_now("second", expected_bytes=10) is None
        waiting = asyncio.create_task(_started(permits, "third"))
        await _settled()
        first.end(10)
        assert permits.acquire_now("second", expected_bytes=10) is None
        (await waiting).end(0)
        assert permits.taken_count == 0

    asyncio.run(act())


def test_tag_when_clients_take_different_sizes_then_all_are_given_the_same_in_the_end() -> None:
    """Scenario 115: a client with fifty times larger fetches gets the same share."""
    order = FairQueueTags()
    sizes = {"small": 1, "middle": 10, "large": 50}
    served: Counter[str] = Counter()
    for _ in range(10_000):
        client = min(sizes, key=order.tag)
        order.start(order.tag(client))
        order.charge(client, sizes[client])
        served[client] += sizes[client]
    assert max(served.values()) - min(served.values()) <= 2 * max(sizes.values())


def test_tag_when_a_client_comes_late_then_it_is_where_the_others_are() -> None:
    order = FairQueueTags()
    for _ in range(100):
        order.start(order.tag("early"))
        order.charge("early", 10)
    assert order.tag("late") == order.tag("early") - 10


def test_forget_when_all_clients_have_gone_then_nothing_is_kept() -> None:
    """Scenario 59."""
    order = FairQueueTags()
    for number in range(100):
        order.charge(number, 10)
        order.forget(number)
    assert len(order) == 0
