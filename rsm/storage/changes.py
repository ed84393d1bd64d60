"""What growing, cutting and joining chunks have in common in the stores that can. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rsm.segment.errors import CorruptError, InvalidConfigError
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage

_COPY_BYTES = 1 << 20

LengthOf = Callable[[str], int]
"""The length of a chunk in bytes. Raises NotFoundError."""


def require_at_end(name: str, *, offset_bytes: int, length_bytes: int) -> None:
    """Return if an append there is at the end of the chunk; raises CorruptError if not."""
    if offset_bytes != length_bytes:
        raise CorruptError(
            "an append is not at the chunk's end",
            name=name,
            offset_bytes=offset_bytes,
            length_bytes=length_bytes,
        )


def require_as_long(name: str, *, wanted_bytes: int, length_bytes: int) -> None:
    """Return if the chunk can be cut to that length; raises CorruptError if it is shorter."""
    if length_bytes < wanted_bytes:
        raise CorruptError(
            "a chunk is shorter than it was to be cut to",
            name=name,
            length_bytes=length_bytes,
            wanted_bytes=wanted_bytes,
        )


def require_distinct(target: str, sources: Sequence[str]) -> None:
    """Return if no chunk would be joined to itself or twice; raises InvalidConfigError if one is.

    Each source is removed once it is joined: it could not be read again.
    """
    if target in sources or len(set(sources)) != len(sources):
        raise InvalidConfigError("a chunk cannot be joined to itself or twice", target=target)


def join_by_appending(
    storage: ChunkStorage, target: str, sources: Sequence[str], length_of: LengthOf
) -> None:
    """`ChunkStorage.concat` of a store that appends. Memory: a bounded piece."""
    require_distinct(target, sources)
    for name in (target, *sources):  # all are there, before the first is changed
        length_of(name)
    for name in sources:
        target_bytes = length_of(target)
        for position in range(0, length_of(name), _COPY_BYTES):
            positions = ByteRange(start_position=position, end_position=position + _COPY_BYTES)
            content = storage.read_range(name, positions)
            storage.append(target, target_bytes + position, content)
        storage.delete(name)


def delete_joined(storage: ChunkStorage, sources: Sequence[str]) -> None:
    """Remove what was joined. Raises the first error of a chunk that may be there still."""
    for outcome in storage.delete_many(sources):
        if outcome.error is not None:
            raise outcome.error
