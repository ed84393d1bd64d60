"""Which reads the loop answers at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from rlm.gateway.fetch.remote_result import ReadPending, ReadRefused, RemoteSlice, release_all
from rlm.gateway.model.actions import PartitionFetch, PrefetchHint, RemoteFetch
from rlm.gateway.model.counters import GatewayCounts, RemoteCount
from rlm.gateway.remote.fair_queue import ReadPermits
from rlm.gateway.remote.fetch_quota import FetchQuota, FetchQuotaSettings
from rlm.gateway.remote.read_failures import ReadFailures
from rlm.gateway.remote.remote_fetches import RemoteFetches
from rlm.gateway.remote.remote_partition_reader import RemotePartitionReader
from rlm.wire.error_codes import ErrorCode
from rlmm.events.local_trim import LocalLogTrimmed
from rsm.segment.errors import RetriableError
from tests.log_dir_builder import EPOCH_ZERO
from tests.log_records import message_of
from tests.remote_world import TIP, WRITER, InlineExecutor, segment_of
from tests.unit.rlm.gateway.remote.fetch_world import FetchWorld

_BATCH_BYTES = 11_000
_NO_QUOTA = 2**63 - 1


class _Reads(RemoteFetches):
    """A client's reads of a store that answers at once; offsets 0 to 100 are stored and trimmed."""

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        *,
        bytes_per_second: int = _NO_QUOTA,
        expected_s: float = 60.0,
        slot_count: int = 1,
    ) -> None:
        self.world = FetchWorld(executor=InlineExecutor())
        self.world.claim()
        self.world.store(segment_of(0))
        event = LocalLogTrimmed(
            event_id=UUID(int=1),
            topic_id_partition=TIP,
            writer=WRITER,
            offset=100,
            lineage=EPOCH_ZERO,
        )
        assert self.world.metadata.publish(event).accepted
        settings = FetchQuotaSettings(
            bytes_per_second=bytes_per_second, window_count=1, window_ms=1_000
        )
        quota = FetchQuota(settings, self.world.clock.monotonic_ms())
        self.permits = ReadPermits(quota=quota, slot_count=slot_count, clock=self.world.clock)
        self.counts = GatewayCounts()
        tier = RemotePartitionReader(self.world.metadata, self.world.fetcher)
        super().__init__(
            tier,
            pool,
            self.permits,
            self.counts,
            client=1,
            failures=ReadFailures(self.world.clock),
            expected_s=expected_s,
        )

    async def read_on(self, count: int) -> int:
        """Fetch `count` times from the beginning; return the offset after them."""
        offset = 0
        for _ in range(count):
            (found,) = await self.read(_wanted(offset))
            offset = _taken(found)
        return offset


def _wanted(*offsets: int) -> RemoteFetch:
    reads = tuple(
        PartitionFetch(
            topic_id_partition=TIP, offset=offset, max_bytes=_BATCH_BYTES, local_start_offset=100
        )
        for offset in offsets
    )
    return RemoteFetch(
        reads=reads, read_committed=False, max_wait_ms=10_000, permit_wait_ms=0, client_id="c"
    )


def _expected(*offsets: int) -> PrefetchHint:
    return PrefetchHint(reads=_wanted(*offsets).reads, read_committed=False)


def _held_count(reads: _Reads) -> int:
    return sum(entry.use_count for entry in reads.world.cache._table._entries.values())


def _taken(found: object) -> int:
    assert isinstance(found, RemoteSlice)
    found.release()
    return found.next_offset


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        later = asyncio.Event()
        asyncio.get_running_loop().call_later(0.001, later.set)
        await later.wait()


def _run(act: Callable[[ThreadPoolExecutor], Awaitable[None]]) -> None:
    async def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            await act(pool)

    asyncio.run(run())


def test_at_once_when_the_client_reads_on_then_given_and_counted_as_any_read() -> None:
    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        offset = await reads.read_on(2)

        outcomes = reads.read_now(_wanted(offset))

        assert outcomes is not None
        assert [_taken(found) for found in outcomes] == [offset + 10]
        assert reads.counts.remote[RemoteCount.SERVED] == 3
        assert reads.counts.topic(TIP.topic).requests == 3
        assert reads.permits.taken_count == 0

    _run(act)


def test_at_once_when_one_of_several_must_be_waited_for_then_none_and_nothing_is_kept() -> None:
    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        offset = await reads.read_on(2)

        assert reads.read_now(_wanted(offset, 70)) is None

        assert reads.permits.taken_count == 0
        reads.world.fetcher.forget(1)
        state = reads.world.cache.state()
        assert (state.waiting_count, state.reader_count) == (0, 0)
        assert _held_count(reads) == 0
        assert reads.counts.remote[RemoteCount.SERVED] == 2

    _run(act)


def test_at_once_when_the_quota_is_used_up_then_none() -> None:
    """Scenario 64: data in memory counts towards the quota, too."""

    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool, bytes_per_second=30_000)
        offset = await reads.read_on(2)
        assert reads.read_now(_wanted(offset)) is not None

        assert reads.read_now(_wanted(offset + 10)) is None

        assert reads.permits.taken_count == 0

    _run(act)


def test_at_once_when_expected_then_what_was_made_ready_is_given() -> None:
    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        offset = await reads.read_on(2)

        reads.expect(_expected(offset))
        expected = reads._expected
        outcomes = reads.read_now(_wanted(offset))

        assert expected is not None
        assert outcomes == expected.slices
        assert [_taken(found) for found in outcomes] == [offset + 10]
        assert reads.counts.remote[RemoteCount.SERVED] == 3
        assert _held_count(reads) == 0

    _run(act)


def test_at_once_when_something_else_was_expected_then_that_is_released() -> None:
    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        offset = await reads.read_on(2)
        reads.expect(_expected(offset))
        reads.expect(_expected(offset))

        assert reads.read_now(_wanted(70)) is None

        assert _held_count(reads) == 0

    _run(act)


def test_expect_when_nothing_is_wanted_after_all_then_what_was_made_ready_is_released() -> None:
    """Scenario 59: even if the client stays connected."""

    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        offset = await reads.read_on(2)
        reads.expect(_expected(offset))
        held_before = _held_count(reads)

        reads.expect(_expected())

        assert held_before > 0
        assert _held_count(reads) == 0

    _run(act)


def test_at_once_when_the_quota_does_not_allow_what_was_expected_then_that_is_released() -> None:
    """Scenario 64."""

    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool, bytes_per_second=20_000)
        offset = await reads.read_on(2)
        reads.expect(_expected(offset))

        assert reads.read_now(_wanted(offset)) is None

        assert _held_count(reads) == 0

    _run(act)


def test_expect_when_the_client_does_not_come_then_its_memory_is_given_back() -> None:
    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool, expected_s=0.001)
        offset = await reads.read_on(2)

        reads.expect(_expected(offset))

        assert _held_count(reads) > 0
        await _until(lambda: _held_count(reads) == 0)
        assert [_taken(found) for found in await reads.read(_wanted(offset))] == [offset + 10]

    _run(act)


def test_expect_when_the_client_came_for_one_before_then_the_next_is_kept_as_long() -> None:
    async def act(pool: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        reads = _Reads(pool, expected_s=0.2)
        offset = await reads.read_on(2)
        started_s = loop.time()
        reads.expect(_expected(offset))
        taken = reads.read_now(_wanted(offset))
        assert taken is not None
        for found in taken:
            _taken(found)
        await _until(lambda: loop.time() >= started_s + 0.1)
        again_s = loop.time()
        reads.expect(_expected(offset + 10))

        await _until(lambda: _held_count(reads) == 0)

        assert loop.time() >= again_s + 0.2

    _run(act)


def test_close_when_a_read_was_expected_then_nothing_is_kept() -> None:
    """Scenario 59."""

    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        offset = await reads.read_on(2)
        reads.expect(_expected(offset))

        reads.close()

        assert _held_count(reads) == 0

    _run(act)


def test_expect_when_the_client_has_gone_then_nothing_is_kept() -> None:
    """For example, a client disconnects during a response after which a read is expected."""

    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        offset = await reads.read_on(2)
        reads.expect(_expected(offset))
        reads.close()

        reads.expect(_expected(offset))

        assert _held_count(reads) == 0

    _run(act)


def test_read_when_a_partition_is_named_twice_then_one_answer_and_nothing_is_kept() -> None:
    """A cancelled read must not be sent: its memory may contain other data by then."""

    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool, slot_count=2)

        first, second = await reads.read(_wanted(0, 50))

        assert first == ReadPending()
        assert isinstance(second, RemoteSlice)
        assert (second.base_offset, _held_count(reads)) == (50, 1)
        second.release()
        assert (_held_count(reads), reads.permits.taken_count) == (0, 0)

    _run(act)


def test_close_when_a_read_is_under_way_then_what_comes_of_it_is_released() -> None:
    """Scenario 59."""

    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        go_on = threading.Event()
        pool.submit(go_on.wait)
        assert await reads.read(replace(_wanted(0), max_wait_ms=0)) == [ReadPending()]

        reads.close()
        go_on.set()
        await reads.wait_closed()

        assert (_held_count(reads), reads.permits.taken_count) == (0, 0)

    _run(act)


def test_close_when_a_read_has_ended_without_a_later_fetch_then_it_is_released() -> None:
    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        go_on = threading.Event()
        pool.submit(go_on.wait)
        assert await reads.read(replace(_wanted(0), max_wait_ms=0)) == [ReadPending()]
        go_on.set()
        await _until(lambda: reads.permits.taken_count == 0)
        assert _held_count(reads) == 1

        reads.close()

        assert _held_count(reads) == 0

    _run(act)


def test_read_when_the_pool_is_shut_down_then_a_storage_error() -> None:
    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        pool.shutdown()

        assert await reads.read(_wanted(0)) == [ReadRefused(ErrorCode.KAFKA_STORAGE_ERROR)]
        assert reads.permits.taken_count == 0

    _run(act)


def test_read_when_the_store_is_down_then_storage_errors_and_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Clients fetch again at once, so that each of their fetches fails."""

    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        reads.world.watched.errors.extend([RetriableError("the store does not answer")] * 30)

        for _ in range(3):
            assert await reads.read(_wanted(0)) == [ReadRefused(ErrorCode.KAFKA_STORAGE_ERROR)]

    with caplog.at_level("WARNING"):
        _run(act)

    (record,) = caplog.records
    assert message_of(record) == "cannot serve stored records"
    assert f"topic_partition={TIP}" in record.getMessage()


def test_close_when_the_pool_takes_no_call_then_ends_all_the_same() -> None:
    """The client's connection waits for this before it closes its sockets."""

    async def act(pool: ThreadPoolExecutor) -> None:
        reads = _Reads(pool)
        pool.shutdown()

        reads.close()
        await reads.wait_closed()

    _run(act)


def test_read_when_the_pool_fails_and_reads_all_the_same_then_what_comes_of_it_is_released() -> (
    None
):
    """A pool that cannot start a thread has queued the call, and another thread takes it."""

    class Exhausted(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            wait([super().submit(fn, *args, **kwargs)])
            raise RuntimeError("no more threads")

    async def run() -> None:
        with Exhausted(1) as pool:
            reads = _Reads(pool)

            (found,) = await reads.read(_wanted(0))

            release_all([found])
            assert _held_count(reads) == 0
            reads.close()
            await reads.wait_closed()

    asyncio.run(run())
