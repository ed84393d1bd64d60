"""Implements the common parts of `append`, `truncate` and `concat`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rsm.segment.errors import CorruptError, InvalidConfigError
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage

_COPY_BYTES = 1 << 20

LengthOf = Callable[[str], int]
"""Returns the length of a chunk in bytes. Raises NotFoundError."""


def require_at_end(name: str, *, offset_bytes: int, length_bytes: int) -> None:
    """Check that an append begins at the chunk's end. Raises CorruptError."""
    if offset_bytes != length_bytes:
        raise CorruptError(
            "cannot append: the offset is not the chunk's end",
            name=name,
            offset_bytes=offset_bytes,
            length_bytes=length_bytes,
        )


def require_as_long(name: str, *, wanted_bytes: int, length_bytes: int) -> None:
    """Check that a chunk is long enough for a truncation. Raises CorruptError."""
    if length_bytes < wanted_bytes:
        raise CorruptError(
            "cannot truncate the chunk: it is shorter than the new length",
            name=name,
            length_bytes=length_bytes,
            wanted_bytes=wanted_bytes,
        )


def require_distinct(target: str, sources: Sequence[str]) -> None:
    """Check that no chunk is named twice. Raises InvalidConfigError.

    A join removes its sources, so it cannot read a source again.
    """
    if target in sources or len(set(sources)) != len(sources):
        raise InvalidConfigError("cannot join the chunks: a chunk is named twice", target=target)


def join_by_appending(
    storage: ChunkStorage, target: str, sources: Sequence[str], length_of: LengthOf
) -> None:
    """Implement `ChunkStorage.concat` with appends. Memory: at most 1 MiB."""
    require_distinct(target, sources)
    for name in (target, *sources):  # All must exist before the first change.
        length_of(name)
    for name in sources:
        target_bytes = length_of(target)
        for position in range(0, length_of(name), _COPY_BYTES):
            positions = ByteRange(start_position=position, end_position=position + _COPY_BYTES)
            content = storage.read_range(name, positions)
            storage.append(target, target_bytes + position, content)
        storage.delete(name)


def delete_joined(storage: ChunkStorage, sources: Sequence[str]) -> None:
    """Delete chunks that were joined to another. Raises the first error of a failed deletion."""
    for outcome in storage.delete_many(sources):
        if outcome.error is not None:
            raise outcome.error
