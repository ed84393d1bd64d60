"""Reuses the memory of large chunks of different sizes.

A general allocator that several threads use for chunks of several sizes wastes memory: holes double
its use. Without reuse, each new chunk causes a page fault for every 4 KiB, which costs more than a
read from a fast store. ChunkBuffers therefore divides slabs into units of 1 MiB. It aligns each
chunk to its size, rounded up to a power of two, so that a large chunk fits where neighboring small
ones were freed. Free memory above the limit returns to the system unit by unit, also from holes
between used chunks.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

_UNIT_BYTES = 1 << 20  # The size of a chunk in a slab is rounded up to whole units.
_LEAST_SLAB_UNITS = 16
_LEAST_BUDGET_BYTES = 32 * _UNIT_BYTES
_ZEROS = "/dev/zero"
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class _Slab:
    """Mapped units. Bit n of `used` is set if a chunk uses unit n, of `backed` if it has memory."""

    __slots__ = ("backed", "pages", "used")

    def __init__(self, unit_count: int) -> None:
        self.pages = mmap.mmap(-1, unit_count * _UNIT_BYTES, flags=_PRIVATE)
        self.used = 0
        self.backed = 0
        with suppress(OSError):  # This fails if the kernel has no huge pages.
            # A huge page would give memory to two units when only one is used.
            self.pages.madvise(mmap.MADV_NOHUGEPAGE)


@dataclass(frozen=True, slots=True)
class _Room:
    """A range of consecutive units of a slab."""

    slab: _Slab
    first: int
    count: int

    @property
    def bits(self) -> int:
        return ((1 << self.count) - 1) << self.first

    @property
    def backed_count(self) -> int:
        """Return the number of these units that have memory."""
        return (self.slab.backed & self.bits).bit_count()


class ChunkBuffers:
    """The buffers of a cache's chunks. Thread-safe.

    Few chunks of the cache should exceed `most_bytes`. Memory: up to a quarter of `budget_bytes` in
    addition to the used bytes. Chunks below 1 MiB, and all chunks of a budget below 32 MiB, come
    from the Python allocator and are not reused. A chunk that exceeds a slab gets its own mapping.
    """

    def __init__(self, *, budget_bytes: int, most_bytes: int = 0) -> None:
        self._least_bytes = _UNIT_BYTES if budget_bytes >= _LEAST_BUDGET_BYTES else budget_bytes + 1
        self._kept_units = budget_bytes // 4 // _UNIT_BYTES
        self._slab_units = _power_of_two(max(_unit_count(most_bytes), _LEAST_SLAB_UNITS))
        self._slabs: list[_Slab] = []
        self._free_units = 0
        # A finalizer may run while this thread has the lock, so it only queues its chunk's room.
        self._freed: deque[_Room] = deque()
        self._lock = threading.Lock()

    @property
    def free_bytes(self) -> int:
        """Return the free memory that is kept for later chunks."""
        return self._free_units * _UNIT_BYTES

    def buffered_bytes(self, length_bytes: int) -> int:
        """Return the memory that a chunk of this length uses."""
        if length_bytes < self._least_bytes:
            return length_bytes
        return _unit_count(length_bytes) * _UNIT_BYTES

    def take(self, length_bytes: int) -> memoryview:
        """Return a buffer of this length, with undefined content.

        **Wrong data:** the memory is reused as soon as no view of the buffer is reachable. So code
        that runs during garbage collection (`__del__`, the end of a generator) must not read a
        view. If the system has no memory, raises OSError, or MemoryError for a small chunk.
        """
        if length_bytes < self._least_bytes:
            return memoryview(bytearray(length_bytes))
        count = _unit_count(length_bytes)
        if count > self._slab_units:
            return memoryview(mmap.mmap(-1, length_bytes, flags=_PRIVATE))
        with self._lock:
            self._reclaim()
            room = self._best(count) or self._new(count)
            buffer = self._buffer(room)
            self._free_units -= room.backed_count
            room.slab.used |= room.bits
            room.slab.backed |= room.bits
        self._reclaim_if_unlocked()
        return buffer[:length_bytes]

    def make_ready(self, length_bytes: int) -> None:
        """Pre-fault memory, so that the next chunk of this length causes no page faults.

        Call it for an occasional reader that waits for its chunk. Does nothing if the chunk would
        not be in a slab, or if the memory is ready, would exceed the limit, or is not available.
        """
        count = _unit_count(length_bytes)
        if length_bytes < self._least_bytes or count > self._slab_units or self._has(count):
            return
        with suppress(OSError), open(_ZEROS, "rb", buffering=0) as zeros:  # noqa: PTH123 - a device
            # The read touches all pages without the GIL; the buffer is freed afterwards.
            zeros.readinto(self.take(length_bytes))

    def _has(self, count: int) -> bool:
        """Return whether `count` free units have memory, or the limit forbids that many more."""
        with self._lock:
            self._reclaim()
            best = self._best(count)
            has_memory = best is not None and best.backed_count == count
            return has_memory or self._free_units + count > self._kept_units

    def _best(self, count: int) -> _Room | None:
        """Return the free room with the most memory, of several the one in the most used slab."""
        best: tuple[_Slab, int] | None = None
        best_backed = best_used = -1
        bits_of_first, step = (1 << count) - 1, _power_of_two(count)
        for slab in self._slabs:
            used, backed = slab.used, slab.backed
            used_count = used.bit_count()
            if used_count + count > self._slab_units:
                continue
            for first in range(0, self._slab_units, step):
                bits = bits_of_first << first
                if used & bits:
                    continue
                backed_count = (backed & bits).bit_count()
                if (backed_count, used_count) > (best_backed, best_used):
                    best, best_backed, best_used = (slab, first), backed_count, used_count
        return None if best is None else _Room(*best, count)

    def _new(self, count: int) -> _Room:
        slab = _Slab(self._slab_units)
        self._slabs.append(slab)
        return _Room(slab, 0, count)

    def _buffer(self, room: _Room) -> memoryview:
        """Return a view of a whole room; a finalizer frees the room after the last view."""
        shared = _bytes_type(room.count).from_buffer(room.slab.pages, room.first * _UNIT_BYTES)
        weakref.finalize(shared, self._queue_freed, room).atexit = False
        return memoryview(shared).cast("B")

    def _queue_freed(self, room: _Room) -> None:
        """Queue a freed room; may run at any time in any thread, also during `take`."""
        self._freed.append(room)
        self._reclaim_if_unlocked()

    def _reclaim_if_unlocked(self) -> None:
        """Reclaim freed rooms; if the lock is taken, a later call reclaims them."""
        while self._freed and self._lock.acquire(blocking=False):
            try:
                self._reclaim()
            finally:
                self._lock.release()

    def _reclaim(self) -> None:
        while self._freed:
            room = self._freed.popleft()
            room.slab.used &= ~room.bits
            kept = min(room.count, self._kept_units - self._free_units)
            self._free_units += kept
            if kept < room.count:
                self._give_up(_Room(room.slab, room.first + kept, room.count - kept))

    def _give_up(self, room: _Room) -> None:
        """Return memory to the system."""
        slab = room.slab
        slab.backed &= ~room.bits
        if slab.backed:
            with suppress(OSError):  # This fails if the memory is locked, which then stays in use.
                slab.pages.madvise(
                    mmap.MADV_DONTNEED, room.first * _UNIT_BYTES, room.count * _UNIT_BYTES
                )
        else:
            self._slabs.remove(slab)


@cache
def _bytes_type(unit_count: int) -> type[ctypes.Array[ctypes.c_ubyte]]:
    return ctypes.c_ubyte * (unit_count * _UNIT_BYTES)


def _unit_count(length_bytes: int) -> int:
    return -(-length_bytes // _UNIT_BYTES)


def _power_of_two(at_least: int) -> int:
    return 1 << (at_least - 1).bit_length()
