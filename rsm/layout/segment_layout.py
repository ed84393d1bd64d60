"""SegmentLayout: what the objects of a log segment are, and where in them its bytes lie.

A layout is pure: it names objects, gives their contents one after the other, and says which bytes
of them to read; whoever writes and reads them tells it what came of it. It must not know where
objects are stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from rsm.layout.companion import Companion
from rsm.layout.keys import LedgerKey, ObjectKey, ObjectKeys
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import ContentSource, LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange

_T = TypeVar("_T")


_CLUSTER_ID_KEY = "kafkaclusterid"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOrigin:
    """Who writes objects: for people who inspect the store, nothing reads it back (PIP-17)."""

    software_version: str
    cluster_id: str

    def attributes(self, *, version_key: str) -> Mapping[str, str]:
        """The two as attributes, which each layout names in its own way."""
        return {version_key: self.software_version, _CLUSTER_ID_KEY: self.cluster_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectContent:
    """The next object to write: under which key, what, and the attributes it gets.

    `inline_attributes` are attributes, too, but only where they come with the object at no cost.
    """

    key: str
    source: ContentSource
    attributes: Mapping[str, str] = field(default_factory=dict)
    inline_attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRange:
    """Bytes of one object."""

    key: str
    positions: ByteRange


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedBytes:
    """Where bytes of a log lie: all of `ranges` are read, `join` makes them the log's.

    `join` takes what each of the ranges holds, in order, and raises CorruptError if that is not
    what has to be there; None if they are the log's as they are. None of the ranges is empty.
    """

    ranges: tuple[ObjectRange, ...]
    join: Callable[[Sequence[bytes]], bytes] | None = None


class SegmentObjects(Protocol):
    """What a layout may ask for while it locates bytes. Thread-safe."""

    def decoded(self, stored: StoredObject, decode: Callable[[bytes], _T]) -> _T:
        """What `decode` makes of a whole object, kept for the next time it is asked for.

        Raises what reading and `decode` raise.
        """

    def floor(self, key: str, at: int) -> tuple[int, int] | None:
        """Of what was noted of an object, the pair with the greatest `at` not above this one."""

    def note(self, key: str, at: int, value: int) -> None:
        """Keep a pair that was learned of an object, for a while."""


class SegmentLayout(ABC):
    """One way to store segments. Stateless, thread-safe."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What segment metadata records of segments in this layout."""

    @property
    @abstractmethod
    def holds_empty_logs(self) -> bool:
        """Whether a segment without any batch can be stored so."""

    @abstractmethod
    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[ObjectKey | LedgerKey, ...]:
        """Of each object, in the order of their writing; the last one holds the companions.

        Raises what the keys raise.
        """

    def plan(
        self, keys: ObjectKeys, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[StoredObject, ...]:
        """Name the objects in the order of their writing; the last one holds the companions.

        Raises InvalidConfigError for a topic whose name no key can hold.
        """
        try:
            planned = self.object_keys(segment_id, base_offset)
        except ValueError as error:
            raise InvalidConfigError("no key for this segment", segment_id=segment_id) from error
        return tuple(StoredObject(key=keys.build(key)) for key in planned)

    @abstractmethod
    def contents(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData
    ) -> Generator[ObjectContent, StoredObject, None]:
        """The content of each of `metadata.objects` in order.

        Is sent each object as it was verified, with its length and checksum, for the next one.
        """

    @abstractmethod
    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        """Where the bytes of the original log at `positions` lie, cut at its end.

        Raises CorruptError, and what `objects` raises.
        """

    @abstractmethod
    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        """The object that `decode_companion` reads. CorruptError if the metadata names none."""

    @abstractmethod
    def decode_companion(self, content: bytes) -> Companion:
        """Read the companion object. Raises CorruptError, UnsupportedError."""


def record_stored(
    metadata: RemoteLogSegmentMetadata, stored: StoredObject
) -> RemoteLogSegmentMetadata:
    """The metadata with what is known of an object since it was written."""
    objects = tuple(stored if o.key == stored.key else o for o in metadata.objects)
    return replace(metadata, objects=objects)
