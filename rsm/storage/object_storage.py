"""Implements the methods of ChunkStorage that are the same for all stores of immutable objects.

A binding implements the creation, look-up, read, listing, deletion and join of objects.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from rsm.segment.errors import NotFoundError, UnsupportedError
from rsm.segment.local_segment import BytesSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage


class ObjectChunkStorage(ChunkStorage):
    """Represents a store without append or truncate. Both raise the message `unsupported`."""

    unsupported: ClassVar[str] = "cannot change a chunk: the store's objects are immutable"

    def create(self, name: str) -> None:
        self.create_with_content(name, BytesSource(content=b""))

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        raise self._refusal(name)

    def truncate(self, name: str, length_bytes: int) -> None:
        raise self._refusal(name)

    def exists(self, name: str) -> bool:
        try:
            self._look_up(name)
        except NotFoundError:
            return False
        return True

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        if not len(positions):  # HTTP cannot request an empty range
            self._look_up(name)
            return b""
        self._check_name(name)
        return self._read(name, positions)

    @abstractmethod
    def _check_name(self, name: str) -> None:
        """Check that the store allows the name. Raises InvalidConfigError."""

    @abstractmethod
    def _look_up(self, name: str) -> object:
        """Check the name and look up the object. Raises InvalidConfigError, NotFoundError."""

    @abstractmethod
    def _read(self, name: str, positions: ByteRange) -> bytes:
        """Read a range, which is not empty, of an object with a valid name."""

    def _refusal(self, name: str) -> UnsupportedError:
        self._check_name(name)
        return UnsupportedError(self.unsupported, name=name)
