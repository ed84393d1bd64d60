"""ChunkBuffers: memory for large chunks, used again and again.

An allocator that serves chunks of several sizes to several threads ends up with twice what is in
use, in holes, or gives back each chunk and takes a page fault for every 4 KiB of the next one,
which costs more than to read it from a fast store. Here each chunk is pages of its own, as many as
a power of two, which the next chunk of that size takes over.
"""

from __future__ import annotations

import mmap
from collections import defaultdict, deque
from contextlib import suppress

_LEAST_BYTES = 1 << 20  # below, the allocator's own way costs little
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def held_bytes(length_bytes: int) -> int:
    """How much memory a chunk of that length takes."""
    if length_bytes < _LEAST_BYTES:
        return length_bytes
    return 1 << (length_bytes - 1).bit_length()


class ChunkBuffers:
    """Thread-safe, and takes no lock: buffers are given back wherever the last user lets go.

    Memory: `kept_bytes` beyond what is in use.
    """

    def __init__(self, *, kept_bytes: int) -> None:
        self._kept_bytes = kept_bytes
        self._free: defaultdict[int, deque[mmap.mmap]] = defaultdict(deque)

    def take(self, length_bytes: int) -> memoryview:
        """Room for so many bytes, whatever is in them, until it is given back."""
        size_bytes = held_bytes(length_bytes)
        if size_bytes < _LEAST_BYTES:
            return memoryview(bytearray(length_bytes))
        try:
            pages = self._free[size_bytes].pop()
        except IndexError:
            self._let_go(size_bytes)
            pages = mmap.mmap(-1, size_bytes, flags=_PRIVATE)
        return memoryview(pages)[:length_bytes]

    def give_back(self, buffer: memoryview) -> None:
        """Take back what `take` gave. What somebody still has a part of is not used again."""
        pages = buffer.obj
        if not isinstance(pages, mmap.mmap):
            return
        try:
            buffer.release()
            pages.resize(len(pages))  # changes nothing, and is refused while there are parts
        except (BufferError, OSError, SystemError):
            return
        if self._free_bytes() + len(pages) <= self._kept_bytes:
            self._free[len(pages)].append(pages)

    def _free_bytes(self) -> int:
        return sum(size_bytes * len(free) for size_bytes, free in list(self._free.items()))

    def _let_go(self, wanted_bytes: int) -> None:
        """Chunks of another size are wanted by now."""
        for size_bytes, free in list(self._free.items()):
            while free and wanted_bytes > 0:
                with suppress(IndexError):
                    free.pop()
                wanted_bytes -= size_bytes
