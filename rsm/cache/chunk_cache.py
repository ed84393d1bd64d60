"""ChunkCache: chunks of stored objects in memory, read once however many ask for them.

A reader asks for one chunk or several and gets a future. Whose turn it is,
rsm.cache.chunk_read_queue decides; here the reads are run, and the futures completed. A failed read
fails all who wait for the chunk, and is not remembered.

Memory: `budget_bytes` for all that is in memory, being read, or in use by somebody.
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
    """How much memory, how many reads at once, and for whom.

    With `concurrent_reads` under way, as many as the executor has threads, nothing more is read
    ahead. A reader that asks for nothing for `idle_reader_ms` loses its share of the budget.
    """

    budget_bytes: int = 256 << 20
    concurrent_reads: int = 8
    idle_reader_ms: int = 30_000

    def __post_init__(self) -> None:
        if min(self.budget_bytes, self.concurrent_reads, self.idle_reader_ms) < 1:
            raise ValueError(f"not settings of a cache: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCacheState:
    """A snapshot: what has happened, what is held, and who waits.

    `reading_count` chunks are being read, `waiting_count` turns wait for room.
    """

    counts: ChunkReadCounts
    evicted_count: int
    buffered_bytes: int
    reading_count: int
    waiting_count: int
    reader_count: int


class ChunkCache(Generic[ValueT]):
    """Thread-safe. `executor` runs the reads and nothing else, and stays the caller's.

    Futures are completed on its threads, or before they are returned; callbacks may use the cache.
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
        # Filled where leases are lost, maybe within a call of ours: taken back by the next one.
        self._abandoned: deque[Sequence[ChunkKey]] = deque()
        self._lock = threading.Lock()

    def read(
        self,
        requests: Sequence[ChunkRequest[ValueT]],
        *,
        reader: ReaderId,
        extend: Sequence[ChunkKey] = (),
    ) -> Future[ChunkLease[ValueT]]:
        """All of `requests`, then as many of `extend` as are in memory, without a gap.

        Of `extend` no more than what is left of the reader's share of the budget.
        Whoever gets the lease releases it. Cancelling the future gives up the place in the queue,
        not what is being read: others may wait for it, or will ask for it again. The future raises
        what a `load` raised; this raises UnsupportedError if the chunks exceed the whole budget.
        Who holds a lease while waiting for another may wait for ever.
        """
        self._take_back()
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
        """As `read` where all of `keys` are in memory; else None, and nothing has happened."""
        self._take_back()
        with self._lock:
            used = self._read_queue.take(keys, reader, self._clock.monotonic_ms(), extend)
            if used is None:
                return None
            values = self._read_queue.values(used)
        return self._lease(values, used)

    def peek(self, key: ChunkKey) -> ValueT | None:
        """A chunk that is in memory, which it may leave at any time; nobody counts as its user."""
        with self._lock:
            return self._read_queue.value(key)

    def holds(self, key: ChunkKey) -> bool:
        """Whether a chunk is in memory or being read; by the next call it may not be any more."""
        with self._lock:
            return key in self._table

    def read_ahead(self, request: ChunkRequest[ValueT], *, reader: ReaderId) -> bool:
        """Read a chunk that `reader` will ask for; False if it has no room now.

        Only what no reader holds is evicted for it, and nothing while anybody waits for room.
        """
        with self._lock:
            start = self._read_queue.ask_ahead(request, reader)
        if start:
            self._read(request)
        return start is not False

    def share_bytes(self) -> int:
        """What each of the readers that are active may hold."""
        with self._lock:
            return self._shares.share_bytes()

    def leave(self, reader: ReaderId) -> None:
        """Nothing is held for the reader any more. Idempotent."""
        with self._lock:
            self._shares.forget(reader)

    def discard(self, key: ChunkKey) -> None:
        """Read the chunk again when it is asked for next, unless it is used or being read now."""
        with self._lock:
            effects = self._read_queue.discard(key)
        self._carry_out(effects)

    def names(self) -> frozenset[str]:
        """The names of which any chunk is in memory or being read."""
        with self._lock:
            return frozenset(key.name for key in self._table)

    def forget(self, names: Container[str]) -> None:
        """Keep no chunk of these names. Who uses one now, or waits for it, keeps or gets it."""
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
        """Act without the lock: reads and callbacks come back here."""
        for request in effects.to_read:
            self._read(request)
        for queued in effects.ended:
            self._complete(queued)

    def _read(self, request: ChunkRequest[ValueT]) -> None:
        try:
            reading = self._executor.submit(request.load)
        except RuntimeError:  # how an executor says that it was shut down
            self._failed(request.key, RetriableError("nothing is read any more"))
        else:
            reading.add_done_callback(partial(self._has_read, request))

    def _has_read(self, request: ChunkRequest[ValueT], reading: Future[ValueT]) -> None:
        error = CancelledError() if reading.cancelled() else reading.exception()
        if isinstance(error, CancelledError):
            error = RetriableError("the read was cancelled")
        if error is not None:
            self._failed(request.key, error)
            return
        with self._lock:
            effects = self._read_queue.read(request.key, reading.result())
        self._carry_out(effects)
        if request.loaded is not None:
            request.loaded()

    def _failed(self, key: ChunkKey, error: BaseException) -> None:
        with self._lock:
            effects = self._read_queue.failed(key, error)
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

    def _take_back(self) -> None:
        while True:
            try:
                keys = self._abandoned.popleft()
            except IndexError:
                return
            self._release(keys)

    def _given_up(self, future: Future[ChunkLease[ValueT]]) -> None:
        """A turn that does not wait any more may be what others wait behind."""
        if future.cancelled():
            with self._lock:
                effects = self._read_queue.go_on()
            self._carry_out(effects)
