"""Simulates a store that contains the objects of generated segments.

One segment's objects are missing, and one object is foreign, so that an audit has findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.metadata import catalogue
from rsm.segment.errors import NotFoundError
from rsm.storage.chunk_storage import ChunkInfo, ChunkStorage
from rsm.storage.memory import MemoryChunkStorage
from spark_tools.connection import StoreConnection

FOREIGN_NAME = "tiered/zzz"
_AWAY = 5
_WRITTEN_MS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedStore(StoreConnection):
    """A connection to a simulated store. Each executor opens its own store."""

    segments: int

    @classmethod
    def of(cls, segments: int, unopened: StoreConnection) -> GeneratedStore:
        """Return a store of `segments` segments, with the settings of `unopened`."""
        return cls(
            settings=unopened.settings,
            segment_settings=unopened.segment_settings,
            segments=segments,
        )

    def open_chunks(self) -> ChunkStorage:
        return _GeneratedStorage(self.segments)


class _GeneratedStorage(MemoryChunkStorage):
    def __init__(self, segments: int) -> None:
        super().__init__(wall_ms=lambda: _WRITTEN_MS)
        self._segments = segments

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        locations = [catalogue.user_partition(number) for number in range(catalogue.PARTITIONS)]
        prefixes = {
            f"tiered/{each.topic}/{each.partition}/": number
            for number, each in enumerate(locations)
        }
        for start in sorted(prefixes):
            if start + "~" < after:
                continue  # All names of the partition sort before `after`.
            for number in range(prefixes[start], self._segments, catalogue.PARTITIONS):
                base = f"{start}{catalogue.start_offset(number):020}"
                if number != _AWAY and base + "~" > after:
                    yield from (
                        _found(name) for name in (f"{base}.log", f"{base}.meta") if name > after
                    )
        if after < FOREIGN_NAME:
            yield _found(FOREIGN_NAME)

    def info(self, name: str) -> ChunkInfo:
        if name == FOREIGN_NAME:
            return _found(name)
        raise NotFoundError("the object does not exist", name=name)


def _found(name: str) -> ChunkInfo:
    return ChunkInfo(
        name=name, length_bytes=catalogue.SEGMENT_BYTES, last_modified_ms=_WRITTEN_MS, crc32c=None
    )
