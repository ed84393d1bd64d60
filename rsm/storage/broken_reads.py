"""Reading on where an answer broke off, so that what came already is not asked for again.

A store's client repeats requests that were not answered; what breaks off in the middle of a body it
mostly leaves to its caller. Owns the bounds: so many openings, and one deadline for all of the
bytes. Must not know how a store is asked.
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
    """What a store began to answer: `length_bytes`, fewer than asked for where the chunk ends.

    It is None where the store does not say, and then `pieces` must raise RetriableError if they end
    early. `version` is the store's name for just this content, None if it has none.
    """

    pieces: Iterator[bytes]
    length_bytes: int | None = None
    version: str | None = None


OpenRange = Callable[[ByteRange, str | None], AbstractContextManager[RangeBody]]
"""Asks for a range, of that version only if one is given.

Raises what ChunkStorage.read_range does, RetriableError if the chunk is another one now.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How often a range is asked for, the first time included, and how long its bytes may take."""

    max_openings: int
    timeout_ms: int


def read_on(open_range: OpenRange, positions: ByteRange, limits: ReadLimits) -> bytes:
    """The bytes at `positions`, fewer only where the chunk ends.

    Raises what `open_range` does, RetriableError where the limits are met, CorruptError if more
    comes than was asked for. Memory: the range twice.
    """
    reading = _Reading(positions, limits)
    while not reading.is_complete:
        with open_range(reading.left, reading.version) as body:
            reading.take(body)
    return reading.content()


class _Reading:
    """One range on its way."""

    def __init__(self, positions: ByteRange, limits: ReadLimits) -> None:
        self.left = positions
        self.version: str | None = None
        self.is_complete = False
        self._pieces: list[bytes] = []
        self._openings_left = limits.max_openings
        self._deadline_s = time.monotonic() + limits.timeout_ms / 1000

    def take(self, body: RangeBody) -> None:
        """Keep what comes of `body`; raises if it broke off once too often."""
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
            raise RetriableError("an answer ended too early", missing=self.left)

    def content(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def _keep(self, piece: bytes) -> None:
        if len(piece) > len(self.left):
            raise CorruptError("the store answered more than it was asked for", wanted=self.left)
        self._pieces.append(piece)
        self._move(self.left.start_position + len(piece), self.left.end_position)
        if len(self.left) and self._is_late():
            raise RetriableError("the store answers too slowly", missing=self.left)

    def _move(self, start_position: int, end_position: int) -> None:
        self.left = ByteRange(start_position=start_position, end_position=end_position)

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline_s
