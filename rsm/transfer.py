"""Writes objects, then verifies them against their source.

An object is verified when its length in the store equals the source's length, and its checksum
matches if the store keeps one. Some stores confirm the content when they create an object
(`has_confirmed_creation`). For other stores, this module requests the length and the checksum, and
compares them. With read-back enabled, it also reads the object. It does not know what the objects
mean.

Memory: one piece of the source; one piece of the object for the read-back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from crc32c import crc32c

from rsm.segment.local_segment import (
    ContentReuse,
    ContentSource,
    acknowledge,
    interrupt_of,
    parts_of,
)
from rsm.segment.metadata import StoredObject
from rsm.segment.ranges import ByteRange
from rsm.spi import CopyAttempt
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.confirmation import require_stored


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBack:
    """Represents `remote.copy.verify=read`: each object is read back in pieces of this length."""

    piece_bytes: int = 1 << 20


class _AttemptSource:
    """Counts the bytes of one pass; checks `attempt` before each piece and before the end."""

    def __init__(
        self, source: ContentSource, attempt: CopyAttempt, reuse: ContentReuse | None
    ) -> None:
        self._source = source
        self._attempt = attempt
        self.reuse = reuse
        self.length_bytes = source.length_bytes
        self.parts = parts_of(source)
        self.interrupt = interrupt_of(source)
        self.read_bytes = 0

    def chunks(self) -> Iterator[memoryview]:
        self._attempt.check()
        for view in self._source.chunks():
            self.read_bytes += len(view)
            yield view
            self._attempt.check()
        self._attempt.check()  # A streamed log may have waited long for its end.

    def acknowledge(self, length_bytes: int) -> None:
        acknowledge(self._source, length_bytes)


def put_verified(
    storage: ChunkStorage,
    key: str,
    source: ContentSource,
    *,
    attempt: CopyAttempt,
    read_back: ReadBack | None = None,
    attributes: Mapping[str, str] | None = None,
    reuse: ContentReuse | None = None,
) -> StoredObject:
    """Write one object, verify it, and return it with its length and CRC32C.

    With `reuse`, the store may use bytes of earlier, unfinished creations again. Raises
    AlreadyExistsError (nothing was written), and the errors of `source`, `attempt` and `storage`.
    Raises CorruptError if the stored bytes differ; the object may then exist.
    """
    attempted = _AttemptSource(source, attempt, reuse)
    checksum = storage.create_with_content(key, attempted, attributes=attributes)
    attempt.check()
    length_bytes = attempted.read_bytes
    if not storage.capabilities.has_confirmed_creation:
        _confirm(storage, key, length_bytes, checksum)
    if read_back is not None:
        read_bytes, read_checksum = read_all(partial(storage.read_range, key), attempt, read_back)
        require_stored(key, "length_bytes", stored=read_bytes, sent=length_bytes)
        require_stored(key, "crc32c", stored=read_checksum, sent=checksum)
    return StoredObject(key=key, length_bytes=length_bytes, crc32c=checksum)


def _confirm(storage: ChunkStorage, key: str, length_bytes: int, checksum: int) -> None:
    info = storage.info(key)
    require_stored(key, "length_bytes", stored=info.length_bytes, sent=length_bytes)
    if info.crc32c is not None:
        require_stored(key, "crc32c", stored=info.crc32c, sent=checksum)


def read_all(
    read: Callable[[ByteRange], bytes], attempt: CopyAttempt, read_back: ReadBack
) -> tuple[int, int]:
    """Read the whole content in pieces by `read`; return its length and CRC32C."""
    checksum = 0
    position = 0
    # Read to the actual end, to detect content that is too long.
    while True:
        attempt.check()
        end_position = position + read_back.piece_bytes
        piece = read(ByteRange(start_position=position, end_position=end_position))
        if not piece:
            return position, checksum
        checksum = crc32c(piece, checksum)
        position += len(piece)
