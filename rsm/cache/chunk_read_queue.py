"""Decides the order of the cache's reads. Not thread-safe; runs no reads itself.

Requests that need room get it in the order of arrival. Each gets the room for all of its chunks at
once, so that no two requests wait for each other. A request that needs no room is not queued. The
caller carries out the returned effects: it reads chunks and completes requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rsm.cache.chunk_lease import ChunkLease, ChunkRequest
from rsm.cache.chunk_table import ChunkEntry, ChunkKey, ChunkTable
from rsm.cache.reader_shares import ReaderId, ReaderShares
from rsm.segment.errors import UnsupportedError

ValueT = TypeVar("ValueT")


@dataclass(slots=True, kw_only=True)
class ChunkReadCounts:
    """Counters of requested and of prefetched chunks.

    A requested chunk is a hit if it was cached, joined if it was already being read, else a miss.
    `read_ahead_count` counts started prefetches, and `failed_count` failed reads of either kind.
    """

    hit_count: int = 0
    joined_count: int = 0
    miss_count: int = 0
    read_ahead_count: int = 0
    read_ahead_refused_count: int = 0
    failed_count: int = 0


@dataclass(slots=True, kw_only=True, eq=False)
class QueuedRead(Generic[ValueT]):
    """A request. `used` lists the chunks that the cache keeps for it.

    `unread` is the subset being read.
    """

    requests: Sequence[ChunkRequest[ValueT]]
    extend: Sequence[ChunkKey] = ()
    future: Future[ChunkLease[ValueT]] = field(default_factory=Future)
    used: list[ChunkKey] = field(default_factory=list)
    unread: set[ChunkKey] = field(default_factory=set)
    values: tuple[ValueT, ...] = ()
    error: BaseException | None = None


@dataclass(slots=True)
class Effects(Generic[ValueT]):
    """The caller's next actions: read `to_read`, and complete `ended`, whose results are set."""

    to_read: list[ChunkRequest[ValueT]] = field(default_factory=list)
    ended: list[QueuedRead[ValueT]] = field(default_factory=list)


class ChunkReadQueue(Generic[ValueT]):
    """The queue of requests to a table of chunks, and the running reads. Not thread-safe."""

    def __init__(
        self, *, table: ChunkTable[ValueT], shares: ReaderShares, concurrent_reads: int
    ) -> None:
        self._table = table
        self._shares = shares
        self._concurrent_reads = concurrent_reads
        self._queue: deque[QueuedRead[ValueT]] = deque()
        self._reading: dict[ChunkKey, list[QueuedRead[ValueT]]] = {}
        self.counts = ChunkReadCounts()

    @property
    def reading_count(self) -> int:
        return len(self._reading)

    @property
    def waiting_count(self) -> int:
        return len(self._queue)

    def value(self, key: ChunkKey) -> ValueT | None:
        """Return a cached chunk, None if it is not cached; do not delay its eviction."""
        entry = self._table.peek(key)
        return None if entry is None else entry.value

    def take(
        self, keys: Sequence[ChunkKey], reader: ReaderId, now_ms: int, extend: Iterable[ChunkKey]
    ) -> list[ChunkKey] | None:
        """Use the chunks of `keys` and the cached chunks of `extend` without queuing.

        Changes nothing and returns None if one of `keys` is not cached.
        """
        sizes = {}
        for key in keys:
            entry = self._table.peek(key)
            if entry is None or entry.value is None:
                return None
            sizes[key] = entry.size_bytes
        self._shares.read_now(reader, sizes, now_ms)
        self.counts.hit_count += len(sizes)
        used: list[ChunkKey] = []
        for key in keys:
            self._use(key, used)
        self._extend(used, extend)
        return used

    def values(self, used: Iterable[ChunkKey]) -> tuple[ValueT, ...]:
        """Return the values of used chunks."""
        values = [self._entry(key).value for key in used]
        return tuple([value for value in values if value is not None])

    def ask(self, queued: QueuedRead[ValueT], reader: ReaderId, now_ms: int) -> Effects[ValueT]:
        """Begin or queue a request. Raises UnsupportedError if its chunks exceed the budget."""
        sizes = {request.key: request.size_bytes for request in queued.requests}
        if sum(sizes.values()) > self._table.budget_bytes:
            raise UnsupportedError(
                "cannot lease the chunks: together they are larger than the cache",
                read_bytes=sum(sizes.values()),
                budget_bytes=self._table.budget_bytes,
            )
        self._shares.read_now(reader, sizes, now_ms)
        self._count(queued)
        effects: Effects[ValueT] = Effects()
        if all(key in self._table for key in sizes):
            self._begin(queued, effects)
            return effects
        self._queue.append(queued)
        return self.start_queued()

    def start_queued(self) -> Effects[ValueT]:
        """Begin queued requests in order, until there is not enough room for the next one."""
        effects: Effects[ValueT] = Effects()
        while self._queue and self._try_begin(self._queue[0], effects):
            self._queue.popleft()
        return effects

    def ask_ahead(self, request: ChunkRequest[ValueT], reader: ReaderId) -> bool | None:
        """Reserve room to prefetch a chunk; return whether the room is reserved.

        Returns None if the chunk is already cached or being read; then it needs no room.
        """
        if request.key in self._table:
            self._shares.read_ahead(reader, request.key, request.size_bytes)
            return None
        if not self._reserve_ahead(request, reader):
            self.counts.read_ahead_refused_count += 1
            return False
        self._reading[request.key] = []
        self.counts.read_ahead_count += 1
        return True

    def record_read(self, key: ChunkKey, value: ValueT) -> Effects[ValueT]:
        """Store the value of a chunk after its read.

        Ends the requests that waited only for this chunk.
        """
        self._entry(key).value = value
        effects: Effects[ValueT] = Effects()
        for queued in self._reading.pop(key):
            queued.unread.discard(key)
            if queued.error is None and not queued.unread:
                self._end(queued, effects)
        self._remove_if_forgotten(key)
        return self._with_queued(effects)

    def record_failure(self, key: ChunkKey, error: BaseException) -> Effects[ValueT]:
        """Drop a chunk after its failed read, and fail all requests that wait for it."""
        self.counts.failed_count += 1
        effects: Effects[ValueT] = Effects()
        for queued in self._reading.pop(key):
            if queued.error is None:
                queued.error = error
                self._release_chunks(queued.used)
                effects.ended.append(queued)
        self._table.remove(key)
        self._shares.drop(key)
        return self._with_queued(effects)

    def release(self, keys: Sequence[ChunkKey]) -> Effects[ValueT]:
        """Release the chunks of a lease, and start queued requests in the freed room."""
        self._release_chunks(keys)
        return self.start_queued()

    def discard(self, key: ChunkKey) -> Effects[ValueT]:
        """Drop a chunk unless it is used or being read."""
        entry = self._table.get(key)
        if entry is not None and entry.is_evictable:
            self._table.remove(key)
            self._shares.drop(key)
        return self.start_queued()

    def forget(self, names: Container[str]) -> Effects[ValueT]:
        """Drop all chunks with these names.

        If a chunk is in use or being read, drops it after its last use.
        """
        for key in [each for each in self._table if each.name in names]:
            self._entry(key).is_forgotten = True
            self._remove_if_forgotten(key)
        return self.start_queued()

    def _try_begin(self, queued: QueuedRead[ValueT], effects: Effects[ValueT]) -> bool:
        if queued.future.cancelled():
            return True
        needed_bytes = sum(r.size_bytes for r in queued.requests if r.key not in self._table)
        own = {request.key for request in queued.requests}
        if not self._evict(
            needed_bytes,
            lambda key: key not in own and not self._shares.is_reserved(key),
            lambda key: key not in own and not self._shares.is_read_now(key),
            lambda key: key not in own,
        ):
            return False
        self._begin(queued, effects)
        return True

    def _begin(self, queued: QueuedRead[ValueT], effects: Effects[ValueT]) -> None:
        for request in queued.requests:
            if request.key not in self._table:
                self._table.reserve(request.key, request.size_bytes)
                self._reading[request.key] = []
                effects.to_read.append(request)
            self._use(request.key, queued.used)
            if request.key in self._reading:
                self._reading[request.key].append(queued)
                queued.unread.add(request.key)
        if not queued.unread:
            self._end(queued, effects)

    def _end(self, queued: QueuedRead[ValueT], effects: Effects[ValueT]) -> None:
        """End a request with its chunks and the cached chunks at the beginning of `extend`."""
        self._extend(queued.used, queued.extend)
        queued.values = self.values(queued.used)
        effects.ended.append(queued)

    def _extend(self, used: list[ChunkKey], extend: Iterable[ChunkKey]) -> None:
        """Use the chunks of `extend`, up to the first that is not cached or exceeds the share.

        A reader's share is the limit, because the chunks stay in memory until the lease ends.
        """
        left_bytes = self._shares.share_bytes()
        for key in used:
            left_bytes -= self._entry(key).size_bytes
        for key in extend:
            entry = self._table.get(key)
            if entry is None or entry.value is None or entry.size_bytes > left_bytes:
                break
            left_bytes -= entry.size_bytes
            self._use(key, used)

    def _use(self, key: ChunkKey, used: list[ChunkKey]) -> None:
        self._entry(key).use_count += 1
        used.append(key)

    def _reserve_ahead(self, request: ChunkRequest[ValueT], reader: ReaderId) -> bool:
        if self._queue or len(self._reading) >= self._concurrent_reads:
            return False
        if not self._shares.read_ahead(reader, request.key, request.size_bytes):
            return False
        if not self._evict(request.size_bytes, lambda key: not self._shares.is_reserved(key)):
            self._shares.release_ahead(reader, request.key)
            return False
        self._table.reserve(request.key, request.size_bytes)
        return True

    def _evict(self, needed_bytes: int, *evictable_if: Callable[[ChunkKey], bool]) -> bool:
        evicted = self._table.make_room(needed_bytes, *evictable_if)
        for key in evicted or ():
            self._shares.drop(key)
        return evicted is not None

    def _release_chunks(self, keys: Sequence[ChunkKey]) -> None:
        for key in keys:
            entry = self._entry(key)
            entry.use_count -= 1
            if entry.is_forgotten:
                self._remove_if_forgotten(key)

    def _remove_if_forgotten(self, key: ChunkKey) -> None:
        entry = self._table.peek(key)
        if entry is not None and entry.is_forgotten and entry.is_evictable:
            self._table.remove(key)
            self._shares.drop(key)

    def _with_queued(self, effects: Effects[ValueT]) -> Effects[ValueT]:
        more = self.start_queued()
        return Effects(effects.to_read + more.to_read, effects.ended + more.ended)

    def _entry(self, key: ChunkKey) -> ChunkEntry[ValueT]:
        entry = self._table.get(key)
        assert entry is not None
        return entry

    def _count(self, queued: QueuedRead[ValueT]) -> None:
        for request in queued.requests:
            if request.key in self._reading:
                self.counts.joined_count += 1
            elif request.key in self._table:
                self.counts.hit_count += 1
            else:
                self.counts.miss_count += 1
