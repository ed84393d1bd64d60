"""Compares an object in the store with its record. Does not know layouts.

Memory: one piece of 1 MiB if the check reads the object.
"""

from __future__ import annotations

from functools import partial

from rsm.segment.errors import NotFoundError
from rsm.segment.metadata import StoredObject
from rsm.spi import CopyAttempt, ObjectFault
from rsm.storage.chunk_storage import ChunkStorage
from rsm.transfer import ReadBack, read_all


class ObjectCheck:
    """Compares lengths and checksums of stored objects; with `read`, also of what it reads.

    Drops an object from the caches of `storage` before it reads the object. Thread-safe.
    """

    def __init__(self, storage: ChunkStorage, *, read: bool, attempt: CopyAttempt) -> None:
        self._storage = storage
        self._read = read
        self._attempt = attempt

    def fault_of(self, stored: StoredObject) -> ObjectFault | None:
        """Return how an object differs from its record; None if it does not.

        Raises RetriableError, and the attempt's errors.
        """
        self._attempt.check()
        try:
            reason = self._difference(stored)
        except NotFoundError as error:
            return ObjectFault(object_key=stored.key, is_missing=True, reason=str(error))
        if reason is None:
            return None
        return ObjectFault(object_key=stored.key, is_missing=False, reason=reason)

    def _difference(self, stored: StoredObject) -> str | None:
        info = self._storage.info(stored.key)
        found = [(info.length_bytes, info.crc32c)]
        if self._read:
            self._storage.forget(stored.key)
            read = partial(self._storage.read_range, stored.key)
            found.append(read_all(read, self._attempt, ReadBack()))
        for length_bytes, checksum in found:
            if stored.length_bytes not in (None, length_bytes):
                return f"length_bytes={length_bytes} recorded={stored.length_bytes}"
            if checksum is not None and stored.crc32c not in (None, checksum):
                return f"crc32c={checksum:08x} recorded={stored.crc32c:08x}"
        return None
