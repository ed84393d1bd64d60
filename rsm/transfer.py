"""Objects on their way: written, then verified against what was handed over.

Owns what "verified" means. An object is verified when the store's length equals the source's, and
the store's checksum, where it keeps one, equals that of the bytes handed over; where the setting
says so, the object is also read back. Must not know what the objects are.

Memory: what the source yields at once; reading back, one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crc32c import crc32c

from rsm.segment.errors import CorruptError
from rsm.segment.local_segment import ContentSource, WrappedSource
from rsm.segment.metadata import StoredObject
from rsm.segment.ranges import ByteRange
from rsm.spi import CopyAttempt
from rsm.storage.chunk_storage import ChunkStorage


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """`remote.copy.verify=read`: every object is read again, in pieces of this length."""

    piece_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSource(WrappedSource):
    """A source that ends with its attempt: the attempt is asked before each piece."""

    attempt: CopyAttempt

    def chunks(self) -> Iterator[memoryview]:
        self.attempt.check()
        for view in self.source.chunks():
            yield view
            self.attempt.check()


def put_verified(
    storage: ChunkStorage,
    key: str,
    source: ContentSource,
    *,
    attempt: CopyAttempt,
    read_back: ReadBack | None = None,
    attributes: Mapping[str, str] | None = None,
) -> StoredObject:
    """Write one object and verify it; returns it with length and CRC32C.

    Raises AlreadyExistsError (nothing was written), what the source or the attempt raises, the
    store's errors, and CorruptError if the store has something else: then the object may be there.
    """
    attempted = AttemptSource(source=source, attempt=attempt)
    checksum = storage.create_with_content(key, attempted, attributes=attributes)
    attempt.check()
    written = StoredObject(key=key, length_bytes=source.length_bytes, crc32c=checksum)
    info = storage.info(key)
    _require_equal(key, "length_bytes", info.length_bytes, written.length_bytes)
    if info.crc32c is not None:
        _require_equal(key, "crc32c", info.crc32c, checksum)
    if read_back is not None:
        _verify_content(storage, written, attempt, read_back)
    return written


def _verify_content(
    storage: ChunkStorage, written: StoredObject, attempt: CopyAttempt, read_back: ReadBack
) -> None:
    checksum = 0
    position = 0
    # One piece further than the end, so that an object that is too long differs as well.
    while True:
        attempt.check()
        piece = storage.read_range(
            written.key,
            ByteRange(start_position=position, end_position=position + read_back.piece_bytes),
        )
        if not piece:
            break
        checksum = crc32c(piece, checksum)
        position += len(piece)
    _require_equal(written.key, "length_bytes", position, written.length_bytes)
    _require_equal(written.key, "crc32c", checksum, written.crc32c)


def _require_equal(key: str, what: str, stored: int, handed_over: int | None) -> None:
    if stored != handed_over:
        raise CorruptError(
            "the store has other bytes than it was handed",
            key=key,
            differs=what,
            stored=stored,
            handed_over=handed_over,
        )
