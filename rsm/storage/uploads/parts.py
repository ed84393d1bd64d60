"""Reads a source of bytes once, in parts of any length."""

from __future__ import annotations

from crc32c import crc32c

from rsm.segment.errors import CorruptError
from rsm.segment.local_segment import ContentSource


class PartReader:
    """One pass over `source`; `checksum` is the CRC32C of the bytes read. Not thread-safe."""

    def __init__(self, source: ContentSource, name: str) -> None:
        self._views = source.chunks()
        self._rest = memoryview(b"")
        self._name = name
        self._length_bytes = source.length_bytes
        self._read_bytes = 0
        self.checksum = 0

    @property
    def left_bytes(self) -> int:
        """The part of the announced length that was not read yet."""
        return self._length_bytes - self._read_bytes

    def read(self, length_bytes: int) -> bytearray:
        """Read the next `length_bytes`, at most `left_bytes`.

        With the last bytes it reads the source to its end. Raises the errors of the source, and
        CorruptError if the source ends earlier or later than announced.
        """
        content = bytearray(length_bytes)
        filled = 0
        while filled < length_bytes:
            piece = self._piece(length_bytes - filled)
            content[filled : filled + len(piece)] = piece
            filled += len(piece)
        self._read_bytes += length_bytes
        self.checksum = crc32c(content, self.checksum)
        if not self.left_bytes:
            self._require_end()
        return content

    def _piece(self, most_bytes: int) -> memoryview:
        while not self._rest:
            view = next(self._views, None)
            if view is None:
                raise self._other_length()
            self._rest = memoryview(view).cast("B")
        piece, self._rest = self._rest[:most_bytes], self._rest[most_bytes:]
        return piece

    def _require_end(self) -> None:
        """Read to the source's end: only there it may raise that its content is invalid."""
        if self._rest or any(len(view) for view in self._views):
            raise self._other_length()

    def _other_length(self) -> CorruptError:
        return CorruptError(
            "a source yielded another length than it announced",
            name=self._name,
            announced_bytes=self._length_bytes,
        )
