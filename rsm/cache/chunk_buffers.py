"""ChunkBuffers: memory for large chunks, used again and again, whatever their sizes.

An allocator that serves chunks of several sizes to several threads ends up with twice what is in
use, in holes, or gives back each chunk and takes a page fault for every 4 KiB of the next one,
which costs more than to read it from a fast store. Here chunks lie in slabs, each at a multiple of
the power of two that it fits into: where small ones went that came together, a large one has room.
What is not to be kept goes back to the system page by page, so holes hold no memory.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

_UNIT_BYTES = 1 << 20  # sizes are multiples of it
_SLAB_UNITS = 16
_ALL_UNITS = (1 << _SLAB_UNITS) - 1
_LEAST_BUDGET_BYTES = 32 * _UNIT_BYTES
_ZEROS = "/dev/zero"
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class _Slab:
    """Addresses of sixteen units. Bit n is that of unit n: whether it is used, and has memory."""

    __slots__ = ("backed", "pages", "used")

    def __init__(self) -> None:
        self.pages = mmap.mmap(-1, _SLAB_UNITS * _UNIT_BYTES, flags=_PRIVATE)
        self.used = 0
        self.backed = 0


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
    """For a cache of `budget_bytes`. Thread-safe.

    Memory: a quarter of the budget beyond what is in use. Small chunks, and those of a small
    cache, are of the allocator's memory, which no other chunk takes over; very large ones are
    pages of their own.
    """

    def __init__(self, *, budget_bytes: int) -> None:
        self._least_bytes = _UNIT_BYTES if budget_bytes >= _LEAST_BUDGET_BYTES else budget_bytes + 1
        self._kept_units = budget_bytes // 4 // _UNIT_BYTES
        self._slabs: list[_Slab] = []
        self._free_units = 0
        # Filled where chunks die, maybe within a call of ours: taken back as soon as can be.
        self._left: deque[_Room] = deque()
        self._lock = threading.Lock()

    @property
    def free_bytes(self) -> int:
        """How much memory is kept for chunks to come."""
        return self._free_units * _UNIT_BYTES

    def held_bytes(self, length_bytes: int) -> int:
        """How much memory a chunk of that length takes."""
        if length_bytes < self._least_bytes:
            return length_bytes
        return _unit_count(length_bytes) * _UNIT_BYTES

    def take(self, length_bytes: int) -> memoryview:
        """Room for so many bytes, whatever is in them; it is used again once no view of it is."""
        if length_bytes < self._least_bytes:
            return memoryview(bytearray(length_bytes))
        count = _unit_count(length_bytes)
        if count > _SLAB_UNITS:
            return memoryview(mmap.mmap(-1, length_bytes, flags=_PRIVATE))
        with self._lock:
            self._take_back()
            room = self._find(count)
            self._free_units -= room.backed_count
            room.slab.used |= room.bits
            room.slab.backed |= room.bits
        return self._buffer(room, length_bytes)

    def make_ready(self, length_bytes: int) -> None:
        """Have memory for the next chunk of that length that costs it no page faults.

        For who takes one now and then, and waits for it. Does nothing where that is at hand, or
        would be more than is kept. Never raises.
        """
        count = _unit_count(length_bytes)
        if length_bytes < self._least_bytes or count > _SLAB_UNITS:
            return
        with suppress(OSError):
            if self._wants(count):
                with open(_ZEROS, "rb", buffering=0) as zeros:  # noqa: PTH123 - no file of ours
                    # Touches all of it, while other threads run; and lets it go again.
                    zeros.readinto(self.take(length_bytes))

    def _wants(self, count: int) -> bool:
        with self._lock:
            self._take_back()
            return (
                self._free_units + count <= self._kept_units
                and self._find(count).backed_count < count
            )

    def _find(self, count: int) -> _Room:
        """Room with as much memory as there is, rather in a slab that is used than in an empty one.

        Of a new slab if there is none.
        """
        step = 1 << (count - 1).bit_length()
        rooms = (
            _Room(slab, first, count)
            for slab in self._slabs
            if slab.used != _ALL_UNITS
            for first in range(0, _SLAB_UNITS, step)
        )
        free = (room for room in rooms if not room.slab.used & room.bits)
        best = max(free, key=lambda room: (room.backed_count, room.slab.used), default=None)
        if best is None:
            best = _Room(_Slab(), 0, count)
            self._slabs.append(best.slab)
        return best

    def _buffer(self, room: _Room, length_bytes: int) -> memoryview:
        """Lives for as long as any view of it."""
        shared = (ctypes.c_ubyte * length_bytes).from_buffer(
            room.slab.pages, room.first * _UNIT_BYTES
        )
        weakref.finalize(shared, self._give_back, room).atexit = False
        return memoryview(shared).cast("B")

    def _give_back(self, room: _Room) -> None:
        """May be called at any point of any thread, within `take` too."""
        self._left.append(room)
        if self._lock.acquire(blocking=False):
            try:
                self._take_back()
            finally:
                self._lock.release()

    def _take_back(self) -> None:
        while self._left:
            room = self._left.popleft()
            slab, bits = room.slab, room.bits
            slab.used &= ~bits
            if self._free_units + room.count <= self._kept_units:
                self._free_units += room.count
                continue
            slab.backed &= ~bits
            if slab.backed:
                slab.pages.madvise(
                    mmap.MADV_DONTNEED, room.first * _UNIT_BYTES, room.count * _UNIT_BYTES
                )
            else:
                self._slabs.remove(slab)


def _unit_count(length_bytes: int) -> int:
    return -(-length_bytes // _UNIT_BYTES)
