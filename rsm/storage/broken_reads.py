"""Continues a read whose response broke off, without requesting the received bytes again.

A store's client repeats a request that gets no response, but usually not one whose response broke
off. This module limits the number of requests, and sets one deadline for all bytes. It does not
know the store's API.
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
    """Represents a response with an unread body, which is shorter at the chunk's end.

    `length_bytes` is None if the store does not send a length; `pieces` must then raise
    RetriableError on an early end. `version` is the store's id of exactly this content; None if it
    has no such id.
    """

    pieces: Iterator[bytes]
    length_bytes: int | None = None
    version: str | None = None


OpenRange = Callable[[ByteRange, str | None], AbstractContextManager[RangeBody]]
"""Requests a range of a chunk, only of the given version unless that is None.

Raises the errors of ChunkStorage.read_range, and RetriableError if the chunk was replaced.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Represents the maximum number of requests for a range, and the time limit for its bytes."""

    max_openings: int
    timeout_ms: int


def read_on(open_range: OpenRange, positions: ByteRange, limits: ReadLimits) -> bytes:
    """Read the bytes at `positions`, fewer only at the chunk's end.

    Raises the errors of `open_range`, RetriableError if a limit is reached, and CorruptError if the
    store sends too many bytes. Memory: twice the range.
    """
    reading = _Reading(positions, limits)
    while not reading.is_complete:
        with open_range(reading.left, reading.version) as body:
            reading.take(body)
    return reading.content()


class _Reading:
    """Represents the state of the read of one range."""

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
            raise RetriableError(
                "cannot read the chunk: the store's response ended early", missing=self.left
            )

    def content(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def _keep(self, piece: bytes) -> None:
        if len(piece) > len(self.left):
            raise CorruptError("the store returned more bytes than requested", wanted=self.left)
        self._pieces.append(piece)
        self._move(self.left.start_position + len(piece), self.left.end_position)
        if len(self.left) and self._is_late():
            raise RetriableError(
                "cannot read the chunk: the store responds too slowly", missing=self.left
            )

    def _move(self, start_position: int, end_position: int) -> None:
        self.left = ByteRange(start_position=start_position, end_position=end_position)

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline_s
