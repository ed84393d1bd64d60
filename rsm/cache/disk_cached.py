"""Caches reads of a chunk storage on this host's disk.

**Stale data:** the cache does not notice that an object changed. Use it only for objects that never
change and whose names are never reused, such as those of segments.
"""

from __future__ import annotations

from collections.abc import Collection

from rsm.cache.disk_chunks import DiskChunks
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper


class DiskCachedChunkStorage(ChunkStorageWrapper):
    """Reads a range from the inner store once, and then from disk. Passes on all other requests."""

    def __init__(self, inner: ChunkStorage, chunks: DiskChunks) -> None:
        super().__init__(inner)
        self._chunks = chunks

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        kept = self._chunks.get(name, positions)
        if kept is not None:
            return kept
        content = self._inner.read_range(name, positions)
        if content and len(content) == len(positions):  # A short read may miss bytes of the object.
            self._chunks.put(name, positions, content)
        return content

    # The default calls `read_range`, which uses the disk.
    read_range_into = ChunkStorage.read_range_into

    def kept(self) -> Collection[str]:
        return (*self._chunks.keys(), *super().kept())

    def forget(self, name: str) -> None:
        self._chunks.forget(name)
        super().forget(name)
