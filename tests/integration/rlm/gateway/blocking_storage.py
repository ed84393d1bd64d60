"""A store whose reads wait until they are released."""

from __future__ import annotations

import threading
from pathlib import Path

from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.filesystem.storage import FilesystemChunkStorage

_DEADLINE_S = 30.0


class BlockingStorage(FilesystemChunkStorage):
    """A storage that can block reads. `reads` counts the reads that have begun."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads = 0
        self._go = threading.Event()

    def release(self) -> None:
        """Release all blocked reads, and block no more."""
        self._go.set()

    def block(self) -> None:
        """Block all reads from now on."""
        self._go.clear()

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        self.reads += 1
        assert self._go.wait(_DEADLINE_S)
        return super().read_range(name, positions)

    read_range_into = ChunkStorage.read_range_into  # calls `read_range`
