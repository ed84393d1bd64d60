"""Reads segments' objects, checks them, and caches decoded ones. Does not know layouts.

Checks the length of each range, and the recorded checksum of each object that is read whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from crc32c import crc32c

from rsm.cache.decoded_objects import DecodedObjects
from rsm.cache.noted_positions import NotedPositions
from rsm.segment.errors import CorruptError
from rsm.segment.metadata import StoredObject
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage

_T = TypeVar("_T")

# The largest objects that are read whole are companions. A log segment has up to 2 GiB, and the
# smallest batch has 68 bytes. With `index.interval.bytes=1` and the largest `segment.index.bytes`,
# each batch has an entry of 8 bytes in the offset index and of 12 bytes in the time index. Those
# indexes have 602 MiB; with Kafka's default `segment.index.bytes`, at most 20 MiB. The rest is for
# aborted transactions and producers.
WHOLE_OBJECT_MAX_BYTES = 1 << 30


class ObjectReader:
    """Reads the objects of one store, with a cache of decoded ones. Thread-safe.

    Memory: decoded objects of up to `decoded_bytes` in total, counted in encoded lengths; and up to
    3 MB of noted positions.
    """

    def __init__(self, storage: ChunkStorage, *, decoded_bytes: int) -> None:
        self._storage = storage
        self._decoded: DecodedObjects[Any] = DecodedObjects(budget_bytes=decoded_bytes)
        self._noted = NotedPositions()

    def read(self, key: str, positions: ByteRange) -> bytes:
        """Return all bytes at `positions`.

        Raises NotFoundError and RetriableError, and CorruptError if the object ends earlier.
        """
        piece = self._storage.read_range(key, positions)
        _require_all(key, positions, len(piece))
        return piece

    def read_into(self, key: str, positions: ByteRange, target: memoryview) -> None:
        """Read into the beginning of `target`. Raises the errors of `read`."""
        _require_all(key, positions, self._storage.read_range_into(key, positions, target))

    def decoded(self, stored: StoredObject, decode: Callable[[bytes], _T]) -> _T:
        """Return the result of `decode` for a whole object, from the cache if possible.

        All calls for one key must use the same `decode`. Raises the errors of `read` and `decode`,
        and CorruptError if the object's checksum differs from its record, or if the object is too
        large.
        """
        value = self._decoded.get(stored.key, lambda: self._decode(stored, decode))
        return cast(_T, value)

    def floor(self, key: str, at: int) -> tuple[int, int] | None:
        return self._noted.floor(key, at)

    def note(self, key: str, at: int, value: int) -> None:
        self._noted.note(key, at, value)

    def kept(self) -> frozenset[str]:
        """Return the keys of all cached objects, including those that the store caches."""
        return frozenset((*self._decoded.keys(), *self._noted.keys(), *self._storage.kept()))

    def forget(self, key: str) -> None:
        """Remove an object from the caches, including the store's cache."""
        self._decoded.forget(key)
        self._noted.forget(key)
        self._storage.forget(key)

    def _decode(self, stored: StoredObject, decode: Callable[[bytes], _T]) -> tuple[_T, int]:
        length_bytes = stored.length_bytes
        if length_bytes is None:
            length_bytes = self._storage.info(stored.key).length_bytes
        require_readable_whole(stored.key, length_bytes)
        content = self.read(stored.key, ByteRange(start_position=0, end_position=length_bytes))
        try:
            _require_recorded(stored, content)
            return decode(content), length_bytes
        except CorruptError:
            self._storage.forget(stored.key)
            raise


def require_readable_whole(key: str, length_bytes: int) -> None:
    """Raise CorruptError if an object is too large to be read whole."""
    if length_bytes > WHOLE_OBJECT_MAX_BYTES:
        raise CorruptError(
            "cannot read the object: it is too large",
            key=key,
            length_bytes=length_bytes,
            max_bytes=WHOLE_OBJECT_MAX_BYTES,
        )


def _require_all(key: str, positions: ByteRange, read_bytes: int) -> None:
    if read_bytes != len(positions):
        raise CorruptError(
            "the object is shorter than recorded",
            key=key,
            wanted=positions,
            read_bytes=read_bytes,
        )


def _require_recorded(stored: StoredObject, content: bytes) -> None:
    if stored.crc32c is not None and crc32c(content) != stored.crc32c:
        raise CorruptError("the object's checksum differs from its record", key=stored.key)
