"""Reading a frame that passes by in chunks: units are looked at, what lies between is skipped.

A grammar is a set of steps. A step reads one unit (a few fields that are looked at together) of
the data it is handed, at the position it is handed, and returns the position behind the unit; it
raises Incomplete, before it has changed anything, if the data ends within the unit. It names the
next step in `ChunkReader.step` (None: the message is over), and in `skip_bytes` how many bytes
behind the unit are of no interest. It may change bytes of its unit in place.

    data = reader.feed(chunk)        what may be passed on now, in order

A unit that a chunk ends in is held back, and passed on when the next chunks have completed it. So
memory is bounded by the largest unit, and a changed unit never left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable

from rlm.wire.scanning.units import Data, IncompleteUnit
from rsm.segment.errors import CorruptError

Step = Callable[[Data, int], int]

# A unit that was cut is completed in strides of this length: most units are shorter.
_STRIDE_BYTES = 64


class ChunkReader:
    """Runs the steps of one frame. Not thread-safe.

    `base_position` is where the data that a step is handed begins in the frame.
    """

    __slots__ = ("_buffered", "_left_bytes", "_position", "base_position", "skip_bytes", "step")

    def __init__(self, first: Step, *, frame_bytes: int) -> None:
        self.step: Step | None = first
        self.skip_bytes = 0
        self.base_position = 0
        self._position = 0  # of the first byte that was not passed on
        self._buffered = bytearray()
        self._left_bytes = frame_bytes

    @property
    def left_bytes(self) -> int:
        """How much of the frame has not been fed yet."""
        return self._left_bytes

    @property
    def passing_bytes(self) -> int:
        """How many of the next bytes are of no interest; they may also go by unseen (`passed`)."""
        return min(self.skip_bytes, self._left_bytes)

    def passed(self, count: int) -> None:
        """So many bytes went by, at most `passing_bytes`. Raises CorruptError as `feed`."""
        self.skip_bytes -= count
        self._left_bytes -= count
        self._position += count
        self._require_whole()

    def feed(self, chunk: memoryview) -> list[memoryview]:
        """Take the next bytes of the frame; returns what may be passed on, views of it mostly.

        `chunk` is writable, of bytes, and within the frame (ValueError if not). What is returned
        is valid until the chunk's buffer is used again. Raises CorruptError for bytes that are
        not such a message, and for one that does not end with the frame.
        """
        self._left_bytes -= len(chunk)
        if self._left_bytes < 0:
            raise ValueError("more bytes than the frame has")
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
            raise CorruptError("frame ends within its message", position=self._position)

    def _run(self, data: memoryview, position: int) -> int:
        """Take steps until the data ends; returns the position behind the last whole unit."""
        end = len(data)
        while True:
            if self.skip_bytes:
                position += self.skip_bytes
                self.skip_bytes = max(0, position - end)
                if position >= end:
                    return end
            if self.step is None:
                if position < end:
                    raise CorruptError("bytes behind the end of a message", left=end - position)
                return position
            try:
                position = self.step(data, position)
            except IncompleteUnit:
                return position

    def _complete(self, chunk: memoryview, passed: list[memoryview]) -> int:
        """Complete the unit that is held back; returns how much of the chunk that took."""
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
