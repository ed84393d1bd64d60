"""ChunkBuffers: memory for large chunks, used again and again.

An allocator that serves chunks of several sizes to several threads ends up with twice what is in
use, in holes, or gives back each chunk and takes a page fault for every 4 KiB of the next one,
which costs more than to read it from a fast store. Here each chunk is pages of its own, which the
next chunk of that size takes over.
"""

from __future__ import annotations

import mmap
import threading
from contextlib import suppress

_UNIT_BYTES = 1 << 20  # sizes are multiples of it, so that the last chunks of segments are alike
_LEAST_BUDGET_BYTES = 32 * _UNIT_BYTES
_ZEROS = "/dev/zero"
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class ChunkBuffers:
    """For a cache of `budget_bytes`. Thread-safe: chunks are given back where they die.

    Memory: a quarter of the budget beyond what is in use. Small chunks, and those of a small
    cache, are of the allocator's memory, which no other chunk takes over.
    """

    def __init__(self, *, budget_bytes: int) -> None:
        self._least_bytes = _UNIT_BYTES if budget_bytes >= _LEAST_BUDGET_BYTES else budget_bytes + 1
        self._kept_bytes = budget_bytes // 4
        self._free: dict[int, list[mmap.mmap]] = {}
        self._lock = threading.Lock()
        self.free_bytes = 0

    def held_bytes(self, length_bytes: int) -> int:
        """How much memory a chunk of that length takes."""
        if length_bytes < self._least_bytes:
            return length_bytes
        return -(-length_bytes // _UNIT_BYTES) * _UNIT_BYTES

    def take(self, length_bytes: int) -> memoryview:
        """Room for so many bytes, whatever is in them, until it is given back."""
        if length_bytes < self._least_bytes:
            return memoryview(bytearray(length_bytes))
        size_bytes = self.held_bytes(length_bytes)
        with self._lock:
            pages, unmapped = self._taken(size_bytes)
        del unmapped  # without the lock
        if pages is None:
            pages = mmap.mmap(-1, size_bytes, flags=_PRIVATE)
        return memoryview(pages)[:length_bytes]

    def make_ready(self, length_bytes: int) -> None:
        """Have memory for the next chunk of that length that costs it no page faults.

        For who takes one now and then, and waits for it. Does nothing where that is at hand, or
        would be more than is kept. Never raises.
        """
        size_bytes = self.held_bytes(length_bytes)
        if length_bytes < self._least_bytes or not self._has_room(size_bytes):
            return
        with suppress(OSError):
            pages = mmap.mmap(-1, size_bytes, flags=_PRIVATE)
            with open(_ZEROS, "rb", buffering=0) as zeros:  # noqa: PTH123 - no file of ours
                zeros.readinto(pages)  # touches all of it, while other threads run
            with self._lock:
                if self._has_room(size_bytes):
                    self._keep(pages)

    def give_back(self, buffer: memoryview) -> None:
        """Take back what `take` gave. What somebody still has a part of is not used again.

        May be called at any point of any thread, within `take` too, for the garbage collector may
        be what lets go of a chunk.
        """
        pages = buffer.obj
        if not isinstance(pages, mmap.mmap):
            return
        try:
            buffer.release()
            pages.resize(len(pages))  # changes nothing, and is refused while there are parts
        except (BufferError, OSError, SystemError):
            return
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self.free_bytes + len(pages) <= self._kept_bytes:
                self._keep(pages)
        finally:
            self._lock.release()

    def _has_room(self, size_bytes: int) -> bool:
        """Whether there is none of that size, but room for one."""
        return not self._free.get(size_bytes) and self.free_bytes + size_bytes <= self._kept_bytes

    def _keep(self, pages: mmap.mmap) -> None:
        self._free.setdefault(len(pages), []).append(pages)
        self.free_bytes += len(pages)

    def _taken(self, size_bytes: int) -> tuple[mmap.mmap | None, list[mmap.mmap]]:
        """Pages of that size if there are any; else as much of other sizes as is to go for them."""
        same = self._free.get(size_bytes)
        if same:
            self.free_bytes -= size_bytes
            return same.pop(), []
        unmapped: list[mmap.mmap] = []
        missing_bytes = size_bytes
        for each_bytes, pages in self._free.items():
            while pages and missing_bytes > 0:
                unmapped.append(pages.pop())
                self.free_bytes -= each_bytes
                missing_bytes -= each_bytes
        self._free = {each_bytes: pages for each_bytes, pages in self._free.items() if pages}
        return None, unmapped
