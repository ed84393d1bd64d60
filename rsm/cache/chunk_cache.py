"""Caches chunks of stored objects in memory for all readers.

A reader requests one or several chunks and gets a future. rsm.cache.chunk_read_queue decides the
order; this module runs the reads and completes the futures. If a read fails, all requests that wait
for the chunk fail; the failure is not cached.

Memory: `budget_bytes` for all chunks that are cached, being read, or leased.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Container, Sequence
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from rsm.cache.chunk_lease import ChunkLease, ChunkRequest
from rsm.cache.chunk_read_queue import ChunkReadCounts, ChunkReadQueue, Effects, QueuedRead
from rsm.cache.chunk_table import ChunkKey, ChunkTable
from rsm.cache.reader_shares import ReaderId, ReaderShares
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCacheSettings:
    """The limits of the cache.

    Set `concurrent_reads` to the executor's thread count: while that many reads run, the cache
    prefetches nothing. A reader that requests nothing for `idle_reader_ms` loses its share of the
    budget.
    """

    budget_bytes: int = 256 << 20
    concurrent_reads: int = 8
    idle_reader_ms: int = 30_000

    def __post_init__(self) -> None:
        if min(self.budget_bytes, self.concurrent_reads, self.idle_reader_ms) < 1:
            raise ValueError(f"the cache settings are invalid: each must be at least 1 ({self})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCacheState:
    """A snapshot of counters and current use.

    `reading_count` is the number of chunks being read, and `waiting_count` the number of
    requests that wait for room.
    """

    counts: ChunkReadCounts
    evicted_count: int
    buffered_bytes: int
    reading_count: int
    waiting_count: int
    reader_count: int


class ChunkCache(Generic[ValueT]):
    """A cache of chunks of stored objects, which all readers share. Thread-safe.

    The caller owns `executor`, which runs only the reads. Futures complete on the executor's
    threads, or on a thread that calls the cache or releases a lease. Their callbacks may use the
    cache.
    """

    def __init__(
        self, *, executor: Executor, clock: Clock, settings: ChunkCacheSettings | None = None
    ) -> None:
        settings = settings or ChunkCacheSettings()
        self.budget_bytes = settings.budget_bytes
        self._executor = executor
        self._clock = clock
        self._table = ChunkTable[ValueT](settings.budget_bytes)
        self._shares = ReaderShares(
            budget_bytes=settings.budget_bytes, idle_ms=settings.idle_reader_ms
        )
        self._read_queue = ChunkReadQueue(
            table=self._table, shares=self._shares, concurrent_reads=settings.concurrent_reads
        )
        # Garbage collection of a lease may run while this thread has the lock, so it only appends.
        self._abandoned: deque[Sequence[ChunkKey]] = deque()
        self._lock = threading.Lock()

    def read(
        self,
        requests: Sequence[ChunkRequest[ValueT]],
        *,
        reader: ReaderId,
        extend: Sequence[ChunkKey] = (),
    ) -> Future[ChunkLease[ValueT]]:
        """Lease all chunks of `requests`, and the cached chunks at the beginning of `extend`.

        **Deadlock:** a reader that waits for a second lease while it keeps a first one may never
        get it. The caller must release the lease.

        The chunks of `extend` use at most the rest of the reader's share of the budget. Canceling
        the future removes the request from the queue. It does not stop reads, because other
        requests may need them. The future raises the errors of `load`, and RetriableError after the
        executor's shutdown. `read` itself raises UnsupportedError if the chunks exceed the budget.
        """
        self._release_abandoned()
        queued: QueuedRead[ValueT] = QueuedRead(requests=requests, extend=extend)
        with self._lock:
            effects = self._read_queue.ask(queued, reader, self._clock.monotonic_ms())
        self._carry_out(effects)
        if not queued.future.done():
            queued.future.add_done_callback(self._given_up)
        return queued.future

    def read_now(
        self, keys: Sequence[ChunkKey], *, reader: ReaderId, extend: Sequence[ChunkKey] = ()
    ) -> ChunkLease[ValueT] | None:
        """Lease as `read` does if all of `keys` are cached; else return None, without effects."""
        self._release_abandoned()
        with self._lock:
            used = self._read_queue.take(keys, reader, self._clock.monotonic_ms(), extend)
            if used is None:
                return None
            values = self._read_queue.values(used)
        return self._lease(values, used)

    def peek(self, key: ChunkKey) -> ValueT | None:
        """Return a chunk without a lease, so that it may be evicted at any time.

        Returns None if it is not cached.
        """
        with self._lock:
            return self._read_queue.value(key)

    def contains(self, key: ChunkKey) -> bool:
        """Return whether a chunk is cached or being read."""
        with self._lock:
            return key in self._table

    def read_ahead(self, request: ChunkRequest[ValueT], *, reader: ReaderId) -> bool:
        """Prefetch a chunk for `reader`; return whether the chunk is now cached or being read.

        Returns False if the reader's share, the budget or the number of running reads does not
        allow the prefetch, or if a request waits for room. Evicts only chunks that no reader
        reserves.
        """
        with self._lock:
            start = self._read_queue.ask_ahead(request, reader)
        if start:
            self._read(request)
        return start is not False

    def share_bytes(self) -> int:
        """Return the share of the budget that each active reader has."""
        with self._lock:
            return self._shares.share_bytes()

    def leave(self, reader: ReaderId) -> None:
        """Release the share of a reader that stopped reading. Idempotent."""
        with self._lock:
            self._shares.forget(reader)

    def discard(self, key: ChunkKey) -> None:
        """Drop a chunk unless it is leased or being read."""
        with self._lock:
            effects = self._read_queue.discard(key)
        self._carry_out(effects)

    def names(self) -> frozenset[str]:
        """Return the names of which a chunk is cached or being read."""
        with self._lock:
            return frozenset(key.name for key in self._table)

    def forget(self, names: Container[str]) -> None:
        """Drop all chunks of these names; leases stay valid, and waiting requests succeed."""
        with self._lock:
            effects = self._read_queue.forget(names)
        self._carry_out(effects)

    def state(self) -> ChunkCacheState:
        with self._lock:
            return ChunkCacheState(
                counts=replace(self._read_queue.counts),
                evicted_count=self._table.evicted_count,
                buffered_bytes=self._table.buffered_bytes,
                reading_count=self._read_queue.reading_count,
                waiting_count=self._read_queue.waiting_count,
                reader_count=len(self._shares),
            )

    def _carry_out(self, effects: Effects[ValueT]) -> None:
        """Start reads and complete futures; do not hold the lock, because both call this cache."""
        for request in effects.to_read:
            self._read(request)
        for queued in effects.ended:
            self._complete(queued)

    def _read(self, request: ChunkRequest[ValueT]) -> None:
        try:
            reading = self._executor.submit(request.load)
        except RuntimeError:  # The executor was shut down.
            self._fail(request.key, RetriableError("cannot read the chunk: the cache is closed"))
        else:
            reading.add_done_callback(partial(self._record_read, request))

    def _record_read(self, request: ChunkRequest[ValueT], reading: Future[ValueT]) -> None:
        error = CancelledError() if reading.cancelled() else reading.exception()
        if isinstance(error, CancelledError):
            error = RetriableError("cannot read the chunk: the read was canceled")
        if error is not None:
            self._fail(request.key, error)
            return
        with self._lock:
            effects = self._read_queue.record_read(request.key, reading.result())
        self._carry_out(effects)
        if request.loaded is not None:
            request.loaded()

    def _fail(self, key: ChunkKey, error: BaseException) -> None:
        with self._lock:
            effects = self._read_queue.record_failure(key, error)
        self._carry_out(effects)

    def _complete(self, queued: QueuedRead[ValueT]) -> None:
        if not queued.future.set_running_or_notify_cancel():
            if queued.error is None:
                self._release(queued.used)
        elif queued.error is not None:
            queued.future.set_exception(queued.error)
        else:
            values, queued.values = queued.values, ()
            queued.future.set_result(self._lease(values, queued.used))

    def _lease(self, values: tuple[ValueT, ...], used: Sequence[ChunkKey]) -> ChunkLease[ValueT]:
        return ChunkLease(values, used, released=self._release, abandoned=self._abandoned.append)

    def _release(self, keys: Sequence[ChunkKey]) -> None:
        with self._lock:
            effects = self._read_queue.release(keys)
        self._carry_out(effects)

    def _release_abandoned(self) -> None:
        while True:
            try:
                keys = self._abandoned.popleft()
            except IndexError:
                return
            self._release(keys)

    def _given_up(self, future: Future[ChunkLease[ValueT]]) -> None:
        """Start queued requests if a request was canceled that may have blocked them."""
        if future.cancelled():
            with self._lock:
                effects = self._read_queue.start_queued()
            self._carry_out(effects)
