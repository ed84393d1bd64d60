"""Notes the produced records, and compares them with what is read.

A fingerprint covers a record's partition, offset, timestamp, key, value and headers. A partition's
digest hashes its fingerprints in the order of offsets, so it detects loss, duplicates, reordering
and changed content. Memory: one fingerprint per record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from demo.failure import DemoFailedError
from demo.records import Headers

_FINGERPRINT_BYTES = 16
_LOCATION = struct.Struct(">iqq")
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRecord:
    """A record with its partition and offset in the log."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    def fingerprint(self) -> bytes:
        """Return 16 bytes that differ if any field differs. Null and empty fields differ, too."""
        parts = [_LOCATION.pack(self.partition, self.offset, self.timestamp_ms)]
        for name, value in self.headers:
            parts += _framed(name.encode())
            parts += _framed(value)
        # Key and value are last, so that the number of frames determines the number of headers.
        parts += _framed(self.key)
        parts += _framed(self.value)
        return blake2b(b"".join(parts), digest_size=_FINGERPRINT_BYTES).digest()


class RecordLedger:
    """The acknowledged records of a topic. Not thread-safe."""

    def __init__(self, partitions: int) -> None:
        self._fingerprints: list[dict[int, bytes]] = [{} for _ in range(partitions)]

    def enter(self, record: LoggedRecord) -> None:
        """Add an acknowledged record. Raises DemoFailedError for a repeated offset."""
        noted = self._fingerprints[record.partition]
        if record.offset in noted:
            raise DemoFailedError(
                f"partition {record.partition} is invalid: two records have offset {record.offset}"
            )
        noted[record.offset] = record.fingerprint()

    def count(self, partition: int | None = None) -> int:
        """Return the number of records of a partition; of all partitions if it is None."""
        if partition is not None:
            return len(self._fingerprints[partition])
        return sum(map(len, self._fingerprints))

    def count_below(self, partition: int, offset: int) -> int:
        """Return the number of records of one partition below an offset."""
        return sum(each < offset for each in self._fingerprints[partition])

    def digest(self, partition: int) -> str:
        """Return the digest of the records that were produced to a partition."""
        noted = self._fingerprints[partition]
        return _digest(noted[offset] for offset in sorted(noted))

    def compare(self, partition: int, records: Iterable[LoggedRecord]) -> str:
        """Require that `records` are all records of a partition, in order; return their digest.

        Raises DemoFailedError for the first record that differs, is missing or was not produced.
        """
        noted = self._fingerprints[partition]
        wanted = iter(sorted(noted))
        found: list[bytes] = []
        for record in records:
            offset = next(wanted, None)
            fingerprint = record.fingerprint()
            found.append(fingerprint)
            if offset != record.offset:
                expected = "no record" if offset is None else f"offset {offset}"
                raise _differs(partition, f"read offset {record.offset}, expected {expected}")
            if fingerprint != noted[offset]:
                raise _differs(partition, f"offset {offset} is not as produced: {record}")
        missing = next(wanted, None)
        if missing is not None:
            raise _differs(partition, f"the records ended before offset {missing}")
        return _digest(found)


def _digest(fingerprints: Iterable[bytes]) -> str:
    whole = blake2b(digest_size=_FINGERPRINT_BYTES)
    for fingerprint in fingerprints:
        whole.update(fingerprint)
    return whole.hexdigest()


def _framed(field: bytes | None) -> tuple[bytes, bytes]:
    return (_LENGTH.pack(-1), b"") if field is None else (_LENGTH.pack(len(field)), field)


def _differs(partition: int, what: str) -> DemoFailedError:
    return DemoFailedError(f"partition {partition} is invalid: {what[:500]}")
