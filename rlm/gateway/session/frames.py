"""Cuts one direction of a connection into frames without holding whole ones.

A frame's beginning is held until its owner has seen enough to choose where the frame goes; from
then on its bytes go there in the pieces in which they come, the size field included. Pure.

Memory: what is held of a frame's beginning, which the owner bounds by failing, and, while stopped,
what one `feed` brought.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Protocol

from rlm.wire.frames import SIZE_BYTES
from rsm.segment.errors import CorruptError

_SIZE = struct.Struct(">i")


class FrameSink(Protocol):
    """Where the bytes of one frame go."""

    def take(self, data: memoryview) -> None:
        """The next bytes, which are valid until the buffer they were received in is reused."""

    @property
    def passing_bytes(self) -> int:
        """How many of the next bytes may go where the frame goes without being taken."""

    def passed(self, count: int) -> None:
        """So many of these did."""

    def end(self) -> None:
        """All bytes were taken, or have passed."""


# Handed what has come of a frame behind its size field, and the size; None: more must come first.
BeginFrame = Callable[[memoryview, int], FrameSink | None]


class FrameStream:
    """Not thread-safe. While `stopped`, no further frame is begun; what comes is held."""

    __slots__ = (
        "_begin",
        "_buffered",
        "_left_bytes",
        "_max_frame_bytes",
        "_sink",
        "ended_count",
        "stopped",
    )

    def __init__(self, begin: BeginFrame, *, max_frame_bytes: int) -> None:
        self.stopped = False
        self.ended_count = 0
        self._begin = begin
        self._max_frame_bytes = max_frame_bytes
        self._buffered = bytearray()
        self._sink: FrameSink | None = None
        self._left_bytes = 0

    @property
    def buffered_bytes(self) -> int:
        """How much came that no sink has taken."""
        return len(self._buffered)

    @property
    def is_within_frame(self) -> bool:
        """Whether a part of a frame came whose rest has not."""
        return self._sink is not None or bool(self._buffered)

    def feed(self, data: memoryview) -> None:
        """Take what was received; nothing of it is referred to after what the sinks keep.

        Raises CorruptError for a size out of bounds, and what the owner's functions raise.
        """
        if self._buffered:
            buffered, self._buffered = self._buffered, bytearray()
            buffered += data
            data = memoryview(buffered)
        position, end = 0, len(data)
        while position < end:
            sink = self._sink or self._begin_frame(data[position:])
            if sink is None:
                self._buffered += data[position:]
                return
            taken = data[position : position + self._left_bytes]
            position += len(taken)
            self._left_bytes -= len(taken)
            self._sink = sink
            sink.take(taken)
            if not self._left_bytes:
                self._end_frame(sink)

    @property
    def passing_bytes(self) -> int:
        """How many of the next bytes may go where their frame goes without being fed."""
        if self._sink is None:
            return 0
        return min(self._sink.passing_bytes, self._left_bytes)

    def passed(self, count: int) -> None:
        """So many of these did; raises as `feed`."""
        sink = self._sink
        assert sink is not None
        self._left_bytes -= count
        sink.passed(count)
        if not self._left_bytes:
            self._end_frame(sink)

    def go_on(self) -> None:
        """Take up what was held, unless stopped; raises as `feed`."""
        if self._buffered and not self.stopped:
            self.feed(memoryview(b""))

    def _end_frame(self, sink: FrameSink) -> None:
        self._sink = None
        self.ended_count += 1
        sink.end()

    def _begin_frame(self, data: memoryview) -> FrameSink | None:
        if self.stopped or len(data) < SIZE_BYTES:
            return None
        (size,) = _SIZE.unpack_from(data)
        if not 0 < size <= self._max_frame_bytes:
            raise CorruptError(
                "frame size out of bounds", size_bytes=size, limit_bytes=self._max_frame_bytes
            )
        sink = self._begin(data[SIZE_BYTES : SIZE_BYTES + size], size)
        if sink is not None:
            self._left_bytes = SIZE_BYTES + size
        return sink
