"""ChunkStorage of what is made at once and then stays as it is: objects, of any object store.

A binding adds how one is made, looked at, read, listed and deleted, and how several are joined.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from rsm.segment.errors import NotFoundError, UnsupportedError
from rsm.segment.local_segment import BytesSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage


class ObjectChunkStorage(ChunkStorage):
    """Neither appends nor truncates; `unsupported` is what it says then."""

    unsupported: ClassVar[str] = "objects cannot be changed in place"

    def create(self, name: str) -> None:
        self.create_with_content(name, BytesSource(content=b""))

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        raise self._refusal(name)

    def truncate(self, name: str, length_bytes: int) -> None:
        raise self._refusal(name)

    def exists(self, name: str) -> bool:
        try:
            self._look(name)
        except NotFoundError:
            return False
        return True

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        if not len(positions):  # for which no request has a word
            self._look(name)
            return b""
        self._check_name(name)
        return self._read(name, positions)

    @abstractmethod
    def _check_name(self, name: str) -> None:
        """Return if the store can have an object of that name; InvalidConfigError if not."""

    @abstractmethod
    def _look(self, name: str) -> object:
        """What the store says of an object, of any name. InvalidConfigError, NotFoundError."""

    @abstractmethod
    def _read(self, name: str, positions: ByteRange) -> bytes:
        """See `read_range`, of a name that was checked and a range that is not empty."""

    def _refusal(self, name: str) -> UnsupportedError:
        self._check_name(name)
        return UnsupportedError(self.unsupported, name=name)
