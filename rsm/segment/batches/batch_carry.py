"""Collects the bytes of a batch that crosses pieces of a log. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rsm.segment.batches.batch import PREFIX_BYTES, batch_length_bytes


class BatchCarry:
    """Collects the batch at `position` from consecutive pieces. Not thread-safe.

    Refers to the memory of each piece that `own` has not copied. Memory: one batch, at most
    MAX_BATCH_BYTES.
    """

    __slots__ = ("_buffered_bytes", "_pieces", "_position", "_size_bytes")

    def __init__(self, position: int) -> None:
        self._position = position
        self._pieces: list[memoryview] = []
        self._buffered_bytes = 0
        self._size_bytes: int | None = None

    @property
    def pieces(self) -> Sequence[memoryview]:
        """Return the batch's bytes so far."""
        return self._pieces

    @property
    def buffered_bytes(self) -> int:
        return self._buffered_bytes

    @property
    def end_position(self) -> int:
        """Return the end of the batch; until its size is known, the end of its prefix."""
        return self._position + (PREFIX_BYTES if self._size_bytes is None else self._size_bytes)

    @property
    def is_whole(self) -> bool:
        return self._buffered_bytes == self._size_bytes

    def take(self, piece: memoryview) -> int:
        """Take the batch's next bytes from the start of `piece`; return their number.

        Raises CorruptError for an impossible size or magic, and then takes none of the bytes.
        """
        if self._size_bytes is None:
            prefix = piece
            if self._pieces:
                prefix = memoryview(b"".join((*self._pieces, piece[:PREFIX_BYTES])))
            self._size_bytes = batch_length_bytes(prefix, 0, base_position=self._position)
        if self._size_bytes is not None:
            piece = piece[: self._size_bytes - self._buffered_bytes]
        self._pieces.append(piece)
        self._buffered_bytes += len(piece)
        return len(piece)

    def own(self) -> None:
        """Copy the last piece, so that its buffer can be reused or freed."""
        self._pieces[-1] = memoryview(bytes(self._pieces[-1]))

    def clear(self) -> None:
        """Free the bytes of a used batch, even while a caller still refers to `pieces`."""
        self._pieces.clear()
