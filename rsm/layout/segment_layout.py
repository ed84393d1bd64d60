"""Defines SegmentLayout: how a log segment becomes objects, and where they contain its bytes.

A layout is pure: it names objects, encodes their contents in order, and locates bytes. Its caller
writes and reads the objects and passes the results back. A layout must not know the store.

The first object contains the log. A layout encodes this object while the log arrives, before the
log's length is known. The other objects close the segment: their contents depend on the whole log.
Instead of one object, a layout may let its caller divide the encoded log into chunks (PDP-34).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, final

from rsm.layout.companion import Companion
from rsm.layout.keys import ObjectKeys, SegmentKey, numbered_chunk
from rsm.layout.ledger_marks import LedgerMarks
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import BatchExtents, ContentSource, SegmentCompanions
from rsm.segment.metadata import (
    CHUNKS_MAX_COUNT,
    RemoteLogSegmentMetadata,
    StoredObject,
    leading_chunks,
)
from rsm.segment.ranges import ByteRange

_T = TypeVar("_T")


_CLUSTER_ID_KEY = "kafkaclusterid"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOrigin:
    """Identifies the writer of objects, for people who inspect the store; no code reads it."""

    software_version: str
    cluster_id: str

    def attributes(self, *, version_key: str) -> Mapping[str, str]:
        """Return the attributes, with the layout's own name for the version."""
        return {version_key: self.software_version, _CLUSTER_ID_KEY: self.cluster_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectContent:
    """Represents the next object to write: its key, content and attributes.

    Stores add `inline_attributes` only if that needs no extra request.
    """

    key: str
    source: ContentSource
    attributes: Mapping[str, str] = field(default_factory=dict)
    inline_attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogToWrite:
    """Represents a log to encode: the names of its segment's objects, and its content.

    `batches` are those of LogSegmentData; None if the batches are not known before they arrive.
    The writer notes each of `ledgers` before its bytes can be read; a layout without ledgers
    ignores them.
    """

    segment_id: RemoteLogSegmentId
    objects: tuple[StoredObject, ...]
    content: ContentSource
    batches: BatchExtents | None = None
    ledgers: LedgerMarks = field(default_factory=LedgerMarks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEncoding:
    """Represents the contents of one segment's objects, in the order of writing.

    The source of `log_object` reads the log once. If the layout has chunks, the object's key is
    that of the first chunk, and the caller divides the source. `closing` then yields all other
    objects. Its first argument is the segment's record, with the log's objects as stored. The
    caller sends each yielded object back with its verified length and checksum.
    """

    log_object: ObjectContent
    closing: Callable[
        [RemoteLogSegmentMetadata, SegmentCompanions], Generator[ObjectContent, StoredObject, None]
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRange:
    """Represents the positions to read in one object."""

    key: str
    positions: ByteRange


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedBytes:
    """Represents ranges of objects that contain bytes of a log. No range is empty.

    `join` converts the contents of all ranges, in order, to the log's bytes, and raises
    CorruptError for invalid contents. If `join` is None, the contents are the log's bytes.
    """

    ranges: tuple[ObjectRange, ...]
    join: Callable[[Sequence[bytes]], bytes] | None = None


class SegmentObjects(Protocol):
    """Reads and caches objects for a layout that locates bytes. Thread-safe."""

    def decoded(self, stored: StoredObject, decode: Callable[[bytes], _T]) -> _T:
        """Return the result of `decode` for a whole object, and cache it.

        Raises the errors of the read and of `decode`.
        """

    def floor(self, key: str, at: int) -> tuple[int, int] | None:
        """Return the noted pair of `key` with the greatest `at` not above this one.

        Returns None if there is none.
        """

    def note(self, key: str, at: int, value: int) -> None:
        """Cache one (`at`, `value`) of `key`, for example an entry id and the entry's position."""


class SegmentLayout(ABC):
    """One way to store segments. Stateless, thread-safe."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the layout's name in segment metadata."""

    @property
    @abstractmethod
    def can_store_empty_logs(self) -> bool:
        """Return whether the layout can store a segment without batches."""

    @property
    def chunk_bytes(self) -> int | None:
        """Return the maximum length of a new log's chunk; None if a log is one object.

        `log_object` must fit into at most CHUNKS_MAX_COUNT such chunks. A stored segment may
        have chunks of any length.
        """
        return None

    @abstractmethod
    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[SegmentKey, ...]:
        """Return the objects' keys in the order of writing; the last object is the companion.

        If `chunk_bytes` is set, the first key is that of chunk 00000, and represents all chunks.
        Raises ValueError if the topic, the partition or the offset does not fit into a key.
        """

    @final
    def plan(
        self, keys: ObjectKeys, segment_id: RemoteLogSegmentId, base_offset: int, *, log_bytes: int
    ) -> tuple[StoredObject, ...]:
        """Name all objects that a log of up to `log_bytes` may have, in the order of writing.

        The last one is the companion. Raises InvalidConfigError if the topic, the partition or the
        offset does not fit into a key, or if the log has more than CHUNKS_MAX_COUNT chunks.
        """
        try:
            planned = self.object_keys(segment_id, base_offset)
        except ValueError as error:
            raise InvalidConfigError(
                "cannot name the segment's objects", segment_id=segment_id, reason=error
            ) from error
        count = 1 if self.chunk_bytes is None else max(1, -(-log_bytes // self.chunk_bytes))
        if count > CHUNKS_MAX_COUNT:
            raise InvalidConfigError(
                "the log has too many chunks",
                segment_id=segment_id,
                chunks=count,
                limit=CHUNKS_MAX_COUNT,
                chunk_bytes=self.chunk_bytes,
                advice="Raise the chunk size of the layout",
            )
        return tuple(StoredObject(key=keys.build(key)) for key in with_chunks(planned, count))

    @final
    def log_count(self, keys: Sequence[str]) -> int:
        """Return how many of a segment's objects contain its log; they are the first ones."""
        return 1 if self.chunk_bytes is None else max(1, leading_chunks(keys))

    @abstractmethod
    def encoding(self, log: LogToWrite) -> SegmentEncoding:
        """Return the contents of `log.objects`. May read `log.batches`, and then raises its errors.

        The source of the log's object raises the errors of the log, and CorruptError or
        RetriableError if the log differs from its batches.
        """

    @abstractmethod
    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        """Locate the bytes of the original log at `positions`; cut them at the log's end.

        Raises CorruptError, and the errors of `objects`.
        """

    @abstractmethod
    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        """Return the object for `decode_companion`.

        Raises CorruptError if the metadata does not name the companion.
        """

    @abstractmethod
    def decode_companion(self, content: bytes) -> Companion:
        """Decode a companion object. Raises CorruptError, UnsupportedError."""


def with_chunks(keys: Sequence[SegmentKey], count: int) -> tuple[SegmentKey, ...]:
    """Return a segment's keys for a log of `count` chunks, given its `keys` for one chunk."""
    if count == 1:
        return tuple(keys)
    return (*(numbered_chunk(keys[0], number) for number in range(count)), *keys[1:])


def record_stored(
    metadata: RemoteLogSegmentMetadata, stored: StoredObject
) -> RemoteLogSegmentMetadata:
    """Return the metadata with the verified length and checksum of one object."""
    objects = tuple(stored if o.key == stored.key else o for o in metadata.objects)
    return replace(metadata, objects=objects)
