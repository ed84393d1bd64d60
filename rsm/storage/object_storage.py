"""ChunkStorage of immutable objects, for any object store.

A binding adds how to create, look up, read, list, delete and join objects.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from rsm.segment.errors import NotFoundError, UnsupportedError
from rsm.segment.local_segment import BytesSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage


class ObjectChunkStorage(ChunkStorage):
    """A store without append and truncate. `unsupported` is the message of their errors."""

    unsupported: ClassVar[str] = "objects cannot be changed in place"

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
        """Check that the store allows an object of that name. Raises InvalidConfigError."""

    @abstractmethod
    def _look_up(self, name: str) -> object:
        """Check the name and look the object up. Raises InvalidConfigError, NotFoundError."""

    @abstractmethod
    def _read(self, name: str, positions: ByteRange) -> bytes:
        """Implement `read_range` for a checked name and a range that is not empty."""

    def _refusal(self, name: str) -> UnsupportedError:
        self._check_name(name)
        return UnsupportedError(self.unsupported, name=name)
