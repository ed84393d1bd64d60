"""SegmentLayout: the objects of a log segment, and the positions of its bytes in them.

A layout is pure: it names objects, encodes their contents in order, and locates bytes. Its caller
writes and reads the objects and passes the results back. It must not know where objects are stored.

The first object has the log. A layout encodes it while the log arrives, without its end or
length. The other objects close the segment: their contents follow from the whole log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from rsm.layout.companion import Companion
from rsm.layout.keys import ObjectKeys, SegmentKey
from rsm.layout.ledger_marks import LedgerMarks
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import BatchExtents, ContentSource, SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange

_T = TypeVar("_T")


_CLUSTER_ID_KEY = "kafkaclusterid"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOrigin:
    """The writer of objects, for people who inspect the store; no code reads it (PIP-17)."""

    software_version: str
    cluster_id: str

    def attributes(self, *, version_key: str) -> Mapping[str, str]:
        """Return the attributes, with the layout's own name for the version."""
        return {version_key: self.software_version, _CLUSTER_ID_KEY: self.cluster_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectContent:
    """The next object to write: its key, content and attributes.

    Stores add `inline_attributes` only if that needs no extra request.
    """

    key: str
    source: ContentSource
    attributes: Mapping[str, str] = field(default_factory=dict)
    inline_attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogToWrite:
    """A log before its first byte is read: the names of its segment's objects, and its content.

    `batches` as in LogSegmentData; None if the batches are known only as they arrive. `ledgers` are
    noted before their bytes are read; a layout without ledgers ignores them.
    """

    segment_id: RemoteLogSegmentId
    objects: tuple[StoredObject, ...]
    content: ContentSource
    batches: BatchExtents | None = None
    ledgers: LedgerMarks = field(default_factory=LedgerMarks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEncoding:
    """The contents of one segment's objects, in the order of writing.

    The source of `log_object` reads the log once. `closing` then yields each other object; it takes
    the segment's record, with the log's object as stored. Its caller sends each object back as
    verified, with its length and checksum.
    """

    log_object: ObjectContent
    closing: Callable[
        [RemoteLogSegmentMetadata, SegmentCompanions], Generator[ObjectContent, StoredObject, None]
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRange:
    """A range of one object."""

    key: str
    positions: ByteRange


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedBytes:
    """The ranges that contain bytes of a log; `join` converts them to the log's bytes.

    `join` takes the contents of all ranges, in order, and raises CorruptError if they are wrong.
    Without `join` they are the log's bytes already. No range is empty.
    """

    ranges: tuple[ObjectRange, ...]
    join: Callable[[Sequence[bytes]], bytes] | None = None


class SegmentObjects(Protocol):
    """The cache that a layout may use while it locates bytes. Thread-safe."""

    def decoded(self, stored: StoredObject, decode: Callable[[bytes], _T]) -> _T:
        """Return a whole object decoded by `decode`, and cache it.

        Raises the errors of the read and of `decode`.
        """

    def floor(self, key: str, at: int) -> tuple[int, int] | None:
        """Return the noted pair of an object with the greatest `at` not above this one."""

    def note(self, key: str, at: int, value: int) -> None:
        """Cache a pair that a read learned about an object."""


class SegmentLayout(ABC):
    """One way to store segments. Stateless, thread-safe."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The layout's name in segment metadata."""

    @property
    @abstractmethod
    def can_store_empty_logs(self) -> bool:
        """Whether the layout can store a segment without batches."""

    @abstractmethod
    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[SegmentKey, ...]:
        """Return the objects' keys in the order of writing; the last object has the companions.

        Raises the errors of the keys.
        """

    def plan(
        self, keys: ObjectKeys, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[StoredObject, ...]:
        """Name the objects in the order of writing; the last one has the companions.

        Raises InvalidConfigError for a topic whose name does not fit into a key.
        """
        try:
            planned = self.object_keys(segment_id, base_offset)
        except ValueError as error:
            raise InvalidConfigError(
                "the segment's topic does not fit into a key", segment_id=segment_id
            ) from error
        return tuple(StoredObject(key=keys.build(key)) for key in planned)

    @abstractmethod
    def encoding(self, log: LogToWrite) -> SegmentEncoding:
        """Return the contents of `log.objects`. May read `log.batches`, and raises its errors.

        The source of the log's object raises the errors of the log, and CorruptError or
        RetriableError if the log differs from its batches.
        """

    @abstractmethod
    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        """Locate the bytes of the original log at `positions`, cut at its end.

        Raises CorruptError, and the errors of `objects`.
        """

    @abstractmethod
    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        """Return the object for `decode_companion`. CorruptError if the metadata names none."""

    @abstractmethod
    def decode_companion(self, content: bytes) -> Companion:
        """Read the companion object. Raises CorruptError, UnsupportedError."""


def record_stored(
    metadata: RemoteLogSegmentMetadata, stored: StoredObject
) -> RemoteLogSegmentMetadata:
    """Return the metadata with the verified length and checksum of one object."""
    objects = tuple(stored if o.key == stored.key else o for o in metadata.objects)
    return replace(metadata, objects=objects)
