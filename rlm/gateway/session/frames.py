"""Splits one direction of a connection into frames without buffering whole frames. Pure.

The stream buffers the start of a frame until its owner can choose a sink. After that, it passes all
bytes to the sink as they arrive, including the size field.

Memory: the start of a frame, until the owner chooses a sink or raises; while stopped, all bytes
that `feed` receives.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Protocol

from rlm.wire.frames import SIZE_BYTES
from rsm.segment.errors import CorruptError

_SIZE = struct.Struct(">i")


class FrameSink(Protocol):
    """Receives one frame's bytes."""

    def take(self, data: memoryview) -> None:
        """Take the next bytes, which are valid until the receive buffer is reused."""

    @property
    def passing_bytes(self) -> int:
        """Return how many of the next bytes may be spliced to the destination, without `take`."""

    def skip(self, count: int) -> None:
        """Skip `count` of the frame's bytes, which were spliced."""

    def end(self) -> None:
        """Finish the frame: all bytes were taken or spliced."""


# The arguments are a frame's bytes so far, without the size field, and the frame's size. None
# means that more bytes are needed.
BeginFrame = Callable[[memoryview, int], FrameSink | None]


class FrameStream:
    """Represents a stream of frames in one direction. Not thread-safe.

    While `stopped`, it starts no further frame and buffers the bytes that arrive.
    """

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
        """Return the number of received bytes that no sink has taken."""
        return len(self._buffered)

    @property
    def is_within_frame(self) -> bool:
        """Return whether a frame has arrived only in part, or waits in the buffer."""
        return self._sink is not None or bool(self._buffered)

    def feed(self, data: memoryview) -> None:
        """Process received bytes; only sinks may keep references to `data`.

        Raises CorruptError if a frame's size is out of bounds, and the errors of `begin` and sinks.
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
        """Return how many of the next bytes may be spliced to the destination, without `feed`."""
        if self._sink is None:
            return 0
        return min(self._sink.passing_bytes, self._left_bytes)

    def skip(self, count: int) -> None:
        """Skip `count` bytes, which were spliced. Raises the errors of `feed`."""
        sink = self._sink
        assert sink is not None
        self._left_bytes -= count
        sink.skip(count)
        if not self._left_bytes:
            self._end_frame(sink)

    def process_buffered(self) -> None:
        """Process buffered bytes, unless stopped. Raises the errors of `feed`."""
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
                "the frame size is invalid: it is not above 0, or it is above the limit",
                size_bytes=size,
                limit_bytes=self._max_frame_bytes,
            )
        sink = self._begin(data[SIZE_BYTES : SIZE_BYTES + size], size)
        if sink is not None:
            self._left_bytes = SIZE_BYTES + size
        return sink
