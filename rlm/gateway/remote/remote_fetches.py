"""Runs one client's reads of the store in parallel, within the client's wait time.

A read that is not finished in time continues. The client gets an empty response and fetches again.
The new fetch uses the same read, so nothing is read twice. The gateway gives up the read if the
client's next fetch of that partition differs, or if the client disconnects.

A sequential reader usually finds its data in memory. The loop prepares that data while the broker
answers, and then responds at once. Any other read may block, so it starts in the pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from rlm.gateway.fetch.remote_result import (
    GapBelow,
    LogDivergence,
    ReadPending,
    ReadThrottled,
    RemoteOutcome,
    RemoteSlice,
)
from rlm.gateway.model.actions import PartitionFetch, PrefetchHint, RemoteFetch
from rlm.gateway.model.counters import GatewayCounts, RemoteCount
from rlm.gateway.remote.fair_queue import ReadPermit, ReadPermits
from rlm.gateway.remote.pending_fetch import ClientPartitionFetch, PendingFetch
from rlm.gateway.remote.read_failures import ReadFailures
from rlm.gateway.remote.remote_partition_reader import RemotePartitionReader
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition

_EXPECTED_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prefetch:
    """Represents the slices for a likely read, all of them in memory."""

    asked: PrefetchHint
    slices: list[RemoteSlice]
    started_s: float
    duration_s: float

    def release(self) -> None:
        for each in self.slices:
            each.release()


class RemoteFetches:
    """Represents the reads of one connection. Use it on the connection's loop only."""

    def __init__(
        self,
        tier: RemotePartitionReader,
        pool: Executor,
        permits: ReadPermits,
        counts: GatewayCounts,
        client: Hashable,
        *,
        failures: ReadFailures,
        expected_s: float = _EXPECTED_S,
    ) -> None:
        """`pool` runs calls that may block. `failures` logs the failed reads of all connections.

        `expected_s`: how long prepared slices are kept for a client that does not fetch.
        """
        self._tier = tier
        self._pool = pool
        self._permits = permits
        self._counts = counts
        self._client = client
        self._failures = failures
        self._loop = asyncio.get_running_loop()
        self._pending: dict[TopicIdPartition, PendingFetch] = {}
        self._expected: _Prefetch | None = None
        self._expected_s = expected_s
        self._expiry: asyncio.TimerHandle | None = None
        self._is_closed = False

    def expect(self, expected: PrefetchHint) -> None:
        """Prepare a likely read, but only if all of it is in memory.

        Releases the slices after `expected_s`, so that an idle client leases no memory.
        """
        self._drop_expected()
        if expected.reads and not self._is_closed:
            self._expected = self._prefetch(expected)
        if self._expected is not None and self._expiry is None:
            self._expiry = self._loop.call_later(self._expected_s, self._expire)

    def read_now(self, wanted: RemoteFetch) -> list[RemoteOutcome] | None:
        """Return the outcomes of `read` if no wait is needed; else None."""
        asked = PrefetchHint(reads=wanted.reads, read_committed=wanted.read_committed)
        if self._expected is not None and self._expected.asked != asked:
            self._drop_expected()
        permit = self._permits.acquire_now(self._client, expected_bytes=_expected_bytes(wanted))
        if permit is None:
            self._drop_expected()
            return None
        ready, self._expected = self._expected or self._prefetch(asked), None
        slices = ready.slices if ready is not None else []
        permit.end(sum(each.size_bytes for each in slices))
        if ready is None:
            return None
        for read in wanted.reads:
            self._counts.topic(read.topic_id_partition.topic).requests += 1
            self._counts.warm.add(ready.duration_s)
        return self._count_all(wanted, slices)

    async def read(self, wanted: RemoteFetch) -> list[RemoteOutcome]:
        """Return an outcome for each read, within `max_wait_ms`."""
        deadline_s = self._loop.time() + wanted.max_wait_ms / 1000
        permit = await self._permits.acquire(
            self._client, expected_bytes=_expected_bytes(wanted), wait_ms=wanted.permit_wait_ms
        )
        if permit is None:
            self._counts.count_throttled(len(wanted.reads), self._permits.throttle_ms())
            return [ReadThrottled()] * len(wanted.reads)
        outcomes: list[RemoteOutcome] = []
        try:
            wait_s = max(deadline_s - self._loop.time(), 0)
            outcomes = await self._read_with_permit(wanted, permit, wait_s)
        finally:
            permit.end(_given_bytes(outcomes))
        return self._count_all(wanted, outcomes)

    def close(self) -> None:
        """Give up a disconnected client's reads; started reads may still fill the cache."""
        self._is_closed = True
        self._drop_expected()
        if self._expiry is not None:
            self._expiry.cancel()
        for pending in self._pending.values():
            pending.give_up()
        self._permits.forget(self._client)
        # RuntimeError: the pool is shut down and needs no call, or it has queued the call although
        # it cannot start a thread.
        with suppress(RuntimeError):
            self._pool.submit(self._tier.forget, self._client)

    async def wait_closed(self) -> None:
        """Wait for the reads that `close` gave up."""
        await asyncio.gather(*[each.outcome for each in self._pending.values()])

    def _expire(self) -> None:
        """Release the prepared slices if they are too old; otherwise set the timer again."""
        self._expiry = None
        if self._expected is None:
            return
        left_s = self._expected.started_s + self._expected_s - self._loop.time()
        if left_s > 0:
            self._expiry = self._loop.call_later(left_s, self._expire)
        else:
            self._drop_expected()

    def _drop_expected(self) -> None:
        if self._expected is not None:
            self._expected.release()
            self._expected = None

    def _prefetch(self, asked: PrefetchHint) -> _Prefetch | None:
        """Return slices for all of the hint's reads; None if any of them is not in memory."""
        if any(each.topic_id_partition in self._pending for each in asked.reads):
            return None
        started_s = self._loop.time()
        slices: list[RemoteSlice] = []
        for read in asked.reads:
            try:
                found = self._tier.read_now(
                    read, read_committed=asked.read_committed, client=self._client
                )
            except TieredStorageError:
                found = None  # The later `read` gets the same error, and reports it.
            if found is None:
                for each in slices:
                    each.release()
                return None
            slices.append(found)
        return _Prefetch(
            asked=asked,
            slices=slices,
            started_s=started_s,
            duration_s=self._loop.time() - started_s,
        )

    def _count_all(
        self, wanted: RemoteFetch, outcomes: Sequence[RemoteOutcome]
    ) -> list[RemoteOutcome]:
        for read, outcome in zip(wanted.reads, outcomes, strict=True):
            self._count(read, outcome)
        now_ms = round(self._loop.time() * 1000)
        self._counts.clients.add(wanted.client_id, _given_bytes(outcomes), now_ms)
        return list(outcomes)

    async def _read_with_permit(
        self, wanted: RemoteFetch, permit: ReadPermit, wait_s: float
    ) -> list[RemoteOutcome]:
        pending = [
            self._start(
                ClientPartitionFetch(
                    read=read, read_committed=wanted.read_committed, client=self._client
                ),
                permit,
            )
            for read in wanted.reads
        ]
        coming = [each.outcome for each in pending if each is not None]
        if coming:
            await asyncio.wait(coming, timeout=wait_s)
        outcomes: list[RemoteOutcome] = []
        for each in pending:
            if each is None:
                outcomes.append(ReadThrottled())
            elif each.outcome.done() and not each.is_given_up:
                self._pending.pop(each.asked.read.topic_id_partition, None)
                outcomes.append(each.outcome.result())
            else:
                outcomes.append(ReadPending())
        return outcomes

    def _start(self, asked: ClientPartitionFetch, permit: ReadPermit) -> PendingFetch | None:
        """Return the running read, or start it; return None if the queue has no free slot."""
        partition = asked.read.topic_id_partition
        pending = self._pending.get(partition)
        if pending is not None and pending.asked == asked:
            return pending
        if pending is not None:
            pending.give_up()
            del self._pending[partition]
        if not permit.take_slot():
            return None
        pending = PendingFetch(asked, self._tier, self._pool, self._failures)
        self._pending[partition] = pending
        pending.outcome.add_done_callback(partial(self._record_read, pending, self._loop.time()))
        self._counts.topic(partition.topic).requests += 1
        return pending

    def _record_read(
        self, pending: PendingFetch, started_s: float, outcome: asyncio.Future[RemoteOutcome]
    ) -> None:
        self._permits.return_slot()
        if isinstance(outcome.result(), RemoteSlice):
            latencies = self._counts.cold if pending.was_cold else self._counts.warm
            latencies.add(self._loop.time() - started_s)

    def _count(self, read: PartitionFetch, outcome: RemoteOutcome) -> None:
        counts = self._counts
        if isinstance(outcome, RemoteSlice):
            counts.remote[RemoteCount.SERVED] += 1
            counts.remote_bytes += outcome.size_bytes
            counts.topic(read.topic_id_partition.topic).size_bytes += outcome.size_bytes
        elif isinstance(outcome, ReadPending):
            counts.remote[RemoteCount.READING] += 1
        elif isinstance(outcome, ReadThrottled):
            counts.remote[RemoteCount.QUEUE_FULL] += 1
        elif isinstance(outcome, LogDivergence):
            counts.remote[RemoteCount.DIVERGING] += 1
        elif isinstance(outcome, GapBelow):
            counts.remote[RemoteCount.GAP] += 1
        elif outcome.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            counts.remote[RemoteCount.OUT_OF_RANGE] += 1
        else:
            counts.remote[RemoteCount.STORAGE_ERROR] += 1
            counts.topic(read.topic_id_partition.topic).errors += 1


def _expected_bytes(wanted: RemoteFetch) -> int:
    return sum(each.max_bytes for each in wanted.reads)


def _given_bytes(outcomes: Sequence[RemoteOutcome]) -> int:
    return sum(each.size_bytes for each in outcomes if isinstance(each, RemoteSlice))
