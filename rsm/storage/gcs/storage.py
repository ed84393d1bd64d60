"""Implements ChunkStorage in a GCS bucket: a chunk is an object with the chunk's name.

The source is read once. Content of a known length up to 8 MiB is sent in a single request. All
other content is sent part by part in one resumable upload; the store discards an unfinished upload
after a week. The store checks the CRC32C of the whole object and returns it. A creation fails if an
object of this name exists. Only the SDK repeats requests. Each creation has its own id, so that the
object can be recognized if the response was lost.

The SDK continues a read that broke off, from the same generation of the object.

Memory: twice a part for each running upload, twice the range being read, and a page of a listing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from uuid import uuid4

from google.api_core.exceptions import RequestRangeNotSatisfiable
from google.cloud.storage import Blob

from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.local_segment import ContentSource
from rsm.segment.ranges import ByteRange
from rsm.storage.changes import delete_joined, require_distinct
from rsm.storage.checksum_text import parse_crc32c
from rsm.storage.chunk_storage import (
    Capabilities,
    ChunkInfo,
    Concat,
    RequestObserver,
    ignore_request,
)
from rsm.storage.confirmation import require_stored
from rsm.storage.gcs import lifecycle
from rsm.storage.gcs.bucket import GcsBucket
from rsm.storage.gcs.errors import SDK_ERRORS, is_taken
from rsm.storage.gcs.settings import GcsSettings
from rsm.storage.lifecycle_rules import LifecycleRule
from rsm.storage.names import check_name, is_name, sort_key
from rsm.storage.object_metadata import creation_of, decode_attributes, encode_metadata
from rsm.storage.object_storage import ObjectChunkStorage
from rsm.storage.uploads.parts import PartReader

_CAPABILITIES = Capabilities(
    can_append=False,
    can_truncate=False,
    concat=Concat.NATIVE,
    has_inline_attributes=True,
    has_stored_checksum=True,
    has_confirmed_creation=True,
)
_MAX_NAME_BYTES = 1024
_MAX_COMPOSED = 32  # One request can join at most this number of objects.


class GcsChunkStorage(ObjectChunkStorage):
    """Stores chunks in the bucket of `settings`. Thread-safe. Opening sends no request."""

    def __init__(self, settings: GcsSettings, *, observe: RequestObserver = ignore_request) -> None:
        self._bucket = GcsBucket(settings, observe=observe)
        self._part_bytes = settings.part_bytes
        self._read_timeout_s = settings.attempt_timeout_ms / 1000

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        self._check_name(name)
        # The SDK reads the next part only after the store accepted the previous part.
        reader = PartReader(source, name, accepts_as_read=True)
        creation = uuid4().hex
        with self._bucket.errors(name):
            blob = self._bucket.blob(name)
            blob.metadata = encode_metadata(attributes or {}, creation=creation)
            blob.chunk_size = self._part_bytes
            try:
                blob.upload_from_file(
                    _ReaderAsFile(reader),
                    size=source.length_bytes,
                    if_generation_match=0,  # The object must not exist.
                    checksum="crc32c",
                    **self._bucket.bounds,
                )
            except SDK_ERRORS as error:
                blob = self._made_before(error, name, creation)
        stored = parse_crc32c(blob.crc32c or "")
        require_stored(name, "length_bytes", stored=blob.size, sent=reader.read_bytes)
        if stored is not None:
            require_stored(name, "crc32c", stored=stored, sent=reader.checksum)
        return reader.checksum

    def concat(self, target: str, sources: Sequence[str]) -> None:
        require_distinct(target, sources)
        joined, *others = (self._look_up(name) for name in (target, *sources))
        with self._bucket.errors(target):
            for first in range(0, len(others), _MAX_COMPOSED - 1):
                group = [joined, *others[first : first + _MAX_COMPOSED - 1]]
                joined.compose(
                    group,
                    if_generation_match=joined.generation,
                    if_source_generation_match=[each.generation for each in group],
                    **self._bucket.bounds,
                )
        delete_joined(self, sources)

    def info(self, name: str) -> ChunkInfo:
        found = self._look_up(name)
        return _info(found, attributes=decode_attributes(found.metadata or {}, name=name))

    def delete(self, name: str) -> None:
        self._check_name(name)
        with self._bucket.errors(name):
            self._bucket.blob(name).delete(**self._bucket.bounds)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ChunkInfo]:
        after_key = sort_key(after)
        with self._bucket.errors(prefix):
            for found in self._bucket.blobs(prefix=prefix or None, start_offset=after or None):
                if sort_key(found.name) > after_key and is_name(found.name):
                    yield _info(found, attributes={})

    def lifecycle_rules(self) -> tuple[LifecycleRule, ...]:
        return tuple(lifecycle.lifecycle_rules(self._bucket.lifecycle_rules()))

    def check_access(self) -> None:
        self._bucket.check_access()

    def close(self) -> None:
        self._bucket.close()

    def _made_before(self, error: Exception, name: str, creation: str) -> Blob:
        """Return the object if an earlier attempt created it; otherwise raise `error`."""
        if is_taken(error):
            found = self._look_up(name)
            if creation_of(found.metadata or {}) == creation:
                return found
        raise error

    def _check_name(self, name: str) -> None:
        check_name(name)
        if len(name.encode()) > _MAX_NAME_BYTES or name.startswith(".well-known/acme-challenge/"):
            raise InvalidConfigError(
                "the chunk name is invalid: it exceeds 1024 bytes, or GCS reserves its prefix",
                name=name,
            )

    def _look_up(self, name: str) -> Blob:
        self._check_name(name)
        with self._bucket.errors(name):
            blob = self._bucket.blob(name)
            blob.reload(**self._bucket.bounds)
            return blob

    def _read(self, name: str, positions: ByteRange) -> bytes:
        content = _BoundedSink(name, len(positions), time.monotonic() + self._read_timeout_s)
        with self._bucket.errors(name):
            try:
                self._bucket.blob(name).download_to_file(
                    content,
                    start=positions.start_position,
                    end=positions.end_position - 1,
                    raw_download=True,
                    checksum=None,
                    **self._bucket.bounds,
                )
            except RequestRangeNotSatisfiable:
                return b""
        return b"".join(content.pieces)


class _ReaderAsFile:
    """Presents the content as a file, which the SDK reads and cannot rewind."""

    def __init__(self, reader: PartReader) -> None:
        self._reader = reader

    def read(self, length_bytes: int) -> bytes:
        left_bytes = self._reader.left_bytes
        most_bytes = length_bytes if left_bytes is None else min(length_bytes, left_bytes)
        return bytes(self._reader.read(most_bytes))

    def tell(self) -> int:
        return self._reader.read_bytes


class _BoundedSink:
    """Represents the file to which the SDK writes a response. Limits its length and time."""

    def __init__(self, name: str, most_bytes: int, deadline_s: float) -> None:
        self.pieces: list[bytes] = []
        self._name = name
        self._left_bytes = most_bytes
        self._deadline_s = deadline_s

    def write(self, piece: bytes) -> None:
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            raise RetriableError("the store returned more bytes than requested", name=self._name)
        if time.monotonic() > self._deadline_s:
            raise RetriableError(
                "cannot read the chunk: the store responds too slowly", name=self._name
            )
        self.pieces.append(piece)


def _info(found: Blob, *, attributes: Mapping[str, str]) -> ChunkInfo:
    return ChunkInfo(
        name=found.name,
        length_bytes=found.size,
        last_modified_ms=int(found.updated.timestamp() * 1000),
        crc32c=parse_crc32c(found.crc32c or ""),
        attributes=attributes,
    )
