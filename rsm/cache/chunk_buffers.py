"""ChunkBuffers: memory for large chunks, used again and again, whatever their sizes.

An allocator that serves chunks of several sizes to several threads ends up with twice what is in
use, in holes, or gives back each chunk and takes a page fault for every 4 KiB of the next one,
which costs more than to read it from a fast store. Here chunks lie in slabs, each at a multiple of
the power of two that it fits into: where small ones went that came together, a large one has room.
What is not to be kept goes back to the system unit by unit, so holes hold no memory.
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

_UNIT_BYTES = 1 << 20  # sizes are multiples of it
_LEAST_SLAB_UNITS = 16
_LEAST_BUDGET_BYTES = 32 * _UNIT_BYTES
_ZEROS = "/dev/zero"
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class _Slab:
    """Addresses of some units. Bit n is that of unit n: whether it is used, and has memory."""

    __slots__ = ("backed", "pages", "used")

    def __init__(self, unit_count: int) -> None:
        self.pages = mmap.mmap(-1, unit_count * _UNIT_BYTES, flags=_PRIVATE)
        self.used = 0
        self.backed = 0
        with suppress(OSError):  # a kernel without them
            # One of these would be memory of two units where one is used.
            self.pages.madvise(mmap.MADV_NOHUGEPAGE)


@dataclass(frozen=True, slots=True)
class _Room:
    """Units of a slab, one behind the other."""

    slab: _Slab
    first: int
    count: int

    @property
    def bits(self) -> int:
        return ((1 << self.count) - 1) << self.first

    @property
    def backed_count(self) -> int:
        """How many of them have memory."""
        return (self.slab.backed & self.bits).bit_count()


class ChunkBuffers:
    """For a cache of `budget_bytes`, of chunks of `most_bytes` as a rule. Thread-safe.

    Memory: a quarter of the budget beyond what is in use. Small chunks, and those of a small
    cache, are of the allocator's memory, which no other chunk takes over; larger ones than usual
    are pages of their own.
    """

    def __init__(self, *, budget_bytes: int, most_bytes: int = 0) -> None:
        self._least_bytes = _UNIT_BYTES if budget_bytes >= _LEAST_BUDGET_BYTES else budget_bytes + 1
        self._kept_units = budget_bytes // 4 // _UNIT_BYTES
        self._slab_units = _power_of_two(max(_unit_count(most_bytes), _LEAST_SLAB_UNITS))
        self._slabs: list[_Slab] = []
        self._free_units = 0
        # Filled where chunks die, maybe within a call of ours: taken back as soon as can be.
        self._let_go: deque[_Room] = deque()
        self._lock = threading.Lock()

    @property
    def free_bytes(self) -> int:
        """How much memory is kept for chunks to come."""
        return self._free_units * _UNIT_BYTES

    def buffered_bytes(self, length_bytes: int) -> int:
        """How much memory a chunk of that length takes."""
        if length_bytes < self._least_bytes:
            return length_bytes
        return _unit_count(length_bytes) * _UNIT_BYTES

    def take(self, length_bytes: int) -> memoryview:
        """Room for so many bytes, whatever is in them.

        It is used again once no view of it can be reached any more: so what runs when garbage is
        collected (`__del__`, the end of a generator) must not look into one. Raises OSError if the
        system has no more.
        """
        if length_bytes < self._least_bytes:
            return memoryview(bytearray(length_bytes))
        count = _unit_count(length_bytes)
        if count > self._slab_units:
            return memoryview(mmap.mmap(-1, length_bytes, flags=_PRIVATE))
        with self._lock:
            self._take_back()
            room = self._best(count) or self._new(count)
            buffer = self._buffer(room)
            self._free_units -= room.backed_count
            room.slab.used |= room.bits
            room.slab.backed |= room.bits
        self._take_back_if_free()
        return buffer[:length_bytes]

    def make_ready(self, length_bytes: int) -> None:
        """Have memory for the next chunk of that length that costs it no page faults.

        For who takes one now and then, and waits for it. Does nothing where that is at hand, or
        would be more than is kept, or the system has none.
        """
        count = _unit_count(length_bytes)
        if length_bytes < self._least_bytes or count > self._slab_units or self._has(count):
            return
        with suppress(OSError), open(_ZEROS, "rb", buffering=0) as zeros:  # noqa: PTH123 - no file of ours
            # Touches all of it, while other threads run; and lets it go again.
            zeros.readinto(self.take(length_bytes))

    def _has(self, count: int) -> bool:
        """Whether room for so many has memory, or must have none."""
        with self._lock:
            self._take_back()
            best = self._best(count)
            has_memory = best is not None and best.backed_count == count
            return has_memory or self._free_units + count > self._kept_units

    def _best(self, count: int) -> _Room | None:
        """Room with as much memory as there is, rather in a slab of which much is used."""
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
        """All of a room; given back with the last view of it."""
        shared = _bytes_type(room.count).from_buffer(room.slab.pages, room.first * _UNIT_BYTES)
        weakref.finalize(shared, self._give_back, room).atexit = False
        return memoryview(shared).cast("B")

    def _give_back(self, room: _Room) -> None:
        """May be called at any point of any thread, within `take` too."""
        self._let_go.append(room)
        self._take_back_if_free()

    def _take_back_if_free(self) -> None:
        """Else who has the lock does it, when it lets go of that."""
        while self._let_go and self._lock.acquire(blocking=False):
            try:
                self._take_back()
            finally:
                self._lock.release()

    def _take_back(self) -> None:
        while self._let_go:
            room = self._let_go.popleft()
            room.slab.used &= ~room.bits
            kept = min(room.count, self._kept_units - self._free_units)
            self._free_units += kept
            if kept < room.count:
                self._give_up(_Room(room.slab, room.first + kept, room.count - kept))

    def _give_up(self, room: _Room) -> None:
        """To the system."""
        slab = room.slab
        slab.backed &= ~room.bits
        if slab.backed:
            with suppress(OSError):  # where all memory is locked, it stays
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
