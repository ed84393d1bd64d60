"""Continues a read after a response broke off, without requesting the received bytes again.

A store's client repeats requests without a response, but usually not after a response broke off.
This module limits the number of requests, and sets one deadline for all bytes. It does not know the
store's API.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rsm.segment.errors import CorruptError, RetriableError
from rsm.segment.ranges import ByteRange


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeBody:
    """A response whose body has not been read; at the chunk's end it is shorter than requested.

    `length_bytes` is None if the store does not send a length; `pieces` must then raise
    RetriableError on an early end. `version` is the store's id of exactly this content, or None.
    """

    pieces: Iterator[bytes]
    length_bytes: int | None = None
    version: str | None = None


OpenRange = Callable[[ByteRange, str | None], AbstractContextManager[RangeBody]]
"""Requests a range, optionally of one version only.

Raises the errors of ChunkStorage.read_range, and RetriableError if the chunk was replaced.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """The maximum number of requests for a range, and the time limit for its bytes."""

    max_openings: int
    timeout_ms: int


def read_on(open_range: OpenRange, positions: ByteRange, limits: ReadLimits) -> bytes:
    """Read the bytes at `positions`, fewer only at the chunk's end.

    Raises the errors of `open_range`, RetriableError above a limit, CorruptError if the store
    sends too many bytes. Memory: twice the range.
    """
    reading = _Reading(positions, limits)
    while not reading.is_complete:
        with open_range(reading.left, reading.version) as body:
            reading.take(body)
    return reading.content()


class _Reading:
    """The state of one range's read."""

    def __init__(self, positions: ByteRange, limits: ReadLimits) -> None:
        self.left = positions
        self.version: str | None = None
        self.is_complete = False
        self._pieces: list[bytes] = []
        self._openings_left = limits.max_openings
        self._deadline_s = time.monotonic() + limits.timeout_ms / 1000

    def take(self, body: RangeBody) -> None:
        """Take the bytes of `body`; raise if it broke off and a limit is reached."""
        self._openings_left -= 1
        self.version = body.version
        if body.length_bytes is not None:
            self._move(self.left.start_position, self.left.start_position + body.length_bytes)
        try:
            for piece in body.pieces:
                self._keep(piece)
        except RetriableError:
            if not self._openings_left or self._is_late():
                raise
        else:
            self.is_complete = body.length_bytes is None
        self.is_complete = self.is_complete or not len(self.left)
        if not self.is_complete and (not self._openings_left or self._is_late()):
            raise RetriableError("the store's response ended too early", missing=self.left)

    def content(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def _keep(self, piece: bytes) -> None:
        if len(piece) > len(self.left):
            raise CorruptError("the store returned more bytes than requested", wanted=self.left)
        self._pieces.append(piece)
        self._move(self.left.start_position + len(piece), self.left.end_position)
        if len(self.left) and self._is_late():
            raise RetriableError("the store answers too slowly", missing=self.left)

    def _move(self, start_position: int, end_position: int) -> None:
        self.left = ByteRange(start_position=start_position, end_position=end_position)

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline_s
