"""Content sources for storages: correct ones, and ones with wrong lengths or errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import ContentSource, PartBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecesSource:
    """Yields `pieces`, all through one reused buffer, as a reader of files does.

    `announced_bytes` is a wrong length to announce; `before_piece` is called with the number of
    each piece.
    """

    pieces: tuple[bytes, ...]
    announced_bytes: int | None = None
    before_piece: Callable[[int], None] = lambda _number: None

    @property
    def length_bytes(self) -> int:
        if self.announced_bytes is not None:
            return self.announced_bytes
        return sum(map(len, self.pieces))

    def chunks(self) -> Iterator[memoryview]:
        buffer = bytearray(max(map(len, self.pieces), default=0))
        for number, piece in enumerate(self.pieces):
            self.before_piece(number)
            buffer[: len(piece)] = piece
            yield memoryview(buffer)[: len(piece)]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsizedSource:
    """A source without an announced length, like content that is still being written."""

    source: ContentSource
    parts: PartBounds = PartBounds.ANY
    length_bytes: None = None

    def chunks(self) -> Iterator[memoryview]:
        return self.source.chunks()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingSource:
    """A source of unknown length that notes what the store accepted."""

    pieces: tuple[bytes, ...]
    accepted: list[int] = field(default_factory=list)
    parts: PartBounds = PartBounds.ANY
    length_bytes: None = None

    def chunks(self) -> Iterator[memoryview]:
        for piece in self.pieces:
            yield memoryview(piece)

    def acknowledge(self, length_bytes: int) -> None:
        self.accepted.append(length_bytes)


def source_of(*pieces: bytes) -> PiecesSource:
    return PiecesSource(pieces=pieces)


def failing_source(*pieces: bytes) -> PiecesSource:
    """Return a source that raises RetriableError when its last piece is requested."""

    def fail(number: int) -> None:
        if number == len(pieces) - 1:
            raise RetriableError("the source broke")

    return PiecesSource(pieces=pieces, before_piece=fail)
