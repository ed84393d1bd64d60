"""Reads a frame that arrives in pieces: reads its units, and skips the bytes between them.

A grammar is a set of `Step` functions. Each reads one unit (a few adjacent fields) from `data` at
`position`, and returns the position after the unit. If the data ends within the unit, the function
raises IncompleteUnit before it changes anything. It stores the next function in `ChunkReader.step`,
or None if the message has ended. In `skip_bytes`, it stores the number of bytes to skip after the
unit. It may change bytes of its unit in place.

    data = reader.feed(chunk)        bytes to relay now, in order

If a piece ends within a unit, the reader buffers the unit until the next pieces complete it. So the
largest unit bounds the memory, and a `Step` sees its whole unit before any of it is relayed.
"""

from __future__ import annotations

from collections.abc import Callable

from rlm.wire.scanning.units import Data, IncompleteUnit
from rsm.segment.errors import CorruptError

Step = Callable[[Data, int], int]

# The reader adds this number of bytes at a time to a buffered unit: most units are shorter.
_STRIDE_BYTES = 64


class ChunkReader:
    """Runs each `Step` of one frame. Not thread-safe.

    `base_position` is where the data of the current `Step` begins in the frame.
    """

    __slots__ = ("_buffered", "_left_bytes", "_position", "base_position", "skip_bytes", "step")

    def __init__(self, first: Step, *, frame_bytes: int) -> None:
        self.step: Step | None = first
        self.skip_bytes = 0
        self.base_position = 0
        self._position = 0  # All bytes before this position were relayed.
        self._buffered = bytearray()
        self._left_bytes = frame_bytes

    @property
    def left_bytes(self) -> int:
        """Return how many bytes of the frame have not been fed yet."""
        return self._left_bytes

    @property
    def passing_bytes(self) -> int:
        """Return how many of the next bytes to skip; they need not be fed (see `skip`)."""
        return min(self.skip_bytes, self._left_bytes)

    def skip(self, count: int) -> None:
        """Skip `count` bytes, at most `passing_bytes`.

        Raises CorruptError if the frame ends within its message.
        """
        self.skip_bytes -= count
        self._left_bytes -= count
        self._position += count
        self._require_whole()

    def feed(self, chunk: memoryview) -> list[memoryview]:
        """Read the next bytes of the frame; return the bytes to relay, mostly views of `chunk`.

        `chunk` must be writable; do not reuse its buffer while the result is in use. Raises
        ValueError if `chunk` is longer than the rest of the frame. Raises CorruptError if the bytes
        do not match the grammar, or if the message does not end with the frame.
        """
        self._left_bytes -= len(chunk)
        if self._left_bytes < 0:
            raise ValueError("the bytes exceed the rest of the frame")
        passed: list[memoryview] = []
        start = self._complete(chunk, passed) if self._buffered else 0
        if not self._buffered:
            self.base_position = self._position - start
            end = self._run(chunk, start)
            if end > start:
                passed.append(chunk[start:end])
            self._position = self.base_position + end
            self._buffered += chunk[end:]
        self._require_whole()
        return passed

    def _require_whole(self) -> None:
        if not self._left_bytes and (self.step or self.skip_bytes):
            raise CorruptError(
                "cannot decode the message: the frame ends within it", position=self._position
            )

    def _run(self, data: memoryview, position: int) -> int:
        """Run each `Step` until the data ends; return the position after the last whole unit."""
        end = len(data)
        while True:
            if self.skip_bytes:
                position += self.skip_bytes
                self.skip_bytes = max(0, position - end)
                if position >= end:
                    return end
            if self.step is None:
                if position < end:
                    raise CorruptError(
                        "cannot decode the message: bytes follow its end", left=end - position
                    )
                return position
            try:
                position = self.step(data, position)
            except IncompleteUnit:
                return position

    def _complete(self, chunk: memoryview, passed: list[memoryview]) -> int:
        """Add bytes of `chunk` to the buffered unit until it is whole; return their number."""
        assert self.step is not None
        self.base_position = self._position
        buffered = self._buffered
        buffered_bytes = len(buffered)
        used = 0
        while used < len(chunk):
            stride = chunk[used : used + _STRIDE_BYTES]
            buffered += stride
            used += len(stride)
            try:
                end = self.step(buffered, 0)
            except IncompleteUnit:
                continue
            passed.append(memoryview(buffered)[:end])
            self._buffered = bytearray()
            self._position += end
            return end - buffered_bytes
        return used
