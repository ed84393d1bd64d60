"""Summarizes the records of each partition in a few numbers that tests can compare.

The digest is the SHA-256 of all records in order: the offset, timestamp, key, value and headers of
each. Numbers are big-endian: lengths and counts have 4 bytes, others 8. A missing key or value has
the length -1. The readers in other languages compute the same.
"""

from __future__ import annotations

import hashlib
import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

_OFFSET_AND_TIMESTAMP = struct.Struct(">qq")
_LENGTH = struct.Struct(">i")

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRead:
    """What was read of a partition. `first_offset` and `last_offset` are -1 if `count` is 0."""

    count: int
    first_offset: int
    last_offset: int
    digest: str


class RecordDigests:
    """Takes records of several partitions, each partition's in order. Not thread-safe."""

    def __init__(self) -> None:
        self._partitions: defaultdict[int, _Partition] = defaultdict(_Partition)
        self.count = 0

    def add(
        self,
        *,
        partition: int,
        offset: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> None:
        """Take the partition's next record."""
        found = self._partitions[partition]
        found.add(offset)
        found.update(_OFFSET_AND_TIMESTAMP.pack(offset, timestamp_ms))
        found.update_sized(key)
        found.update_sized(value)
        found.update(_LENGTH.pack(len(headers)))
        for name, content in headers:
            found.update_sized(name.encode())
            found.update_sized(content)
        self.count += 1

    def reads(self) -> dict[int, PartitionRead]:
        """Return the digests by partition, without partitions that had no record."""
        return {number: found.read() for number, found in sorted(self._partitions.items())}


class _Partition:
    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._count = 0
        self._first_offset = -1
        self._last_offset = -1

    def add(self, offset: int) -> None:
        if self._count == 0:
            self._first_offset = offset
        self._last_offset = offset
        self._count += 1

    def update(self, content: bytes) -> None:
        self._sha256.update(content)

    def update_sized(self, content: bytes | None) -> None:
        self.update(_LENGTH.pack(-1 if content is None else len(content)))
        self.update(content or b"")

    def read(self) -> PartitionRead:
        return PartitionRead(
            count=self._count,
            first_offset=self._first_offset,
            last_offset=self._last_offset,
            digest=self._sha256.hexdigest(),
        )
