"""SegmentLayout: what the objects of a log segment are, and where in them its bytes lie.

A layout is pure: it names objects and gives their contents one after the other; whoever writes
them tells it in the segment's metadata which are done. It must not know where objects are stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from rsm.layout.companion import Companion
from rsm.layout.keys import ObjectKeys
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import ContentSource, LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesSource:
    """Content that is in memory whole: a ContentSource of one piece."""

    content: bytes

    @property
    def length_bytes(self) -> int:
        return len(self.content)

    def chunks(self) -> Iterator[memoryview]:
        if self.content:
            yield memoryview(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectContent:
    """The next object to write: under which key, and what."""

    key: str
    source: ContentSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRange:
    """Bytes of one object."""

    key: str
    positions: ByteRange


class SegmentLayout(ABC):
    """One way to store segments. Stateless, thread-safe."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What segment metadata records of segments in this layout."""

    @abstractmethod
    def plan(
        self, keys: ObjectKeys, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[StoredObject, ...]:
        """Name the objects in the order of their writing; the last one holds the companions.

        Raises InvalidConfigError for a topic whose name no key can hold.
        """

    @abstractmethod
    def next_object(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData
    ) -> ObjectContent | None:
        """The first of `metadata.objects` without a length, with its content; None at the end.

        The objects before it have the lengths and checksums that were verified.
        """

    @abstractmethod
    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange
    ) -> tuple[ObjectRange, ...]:
        """Where the bytes of the original log at `positions` lie, in order, cut at its end.

        None of the ranges is empty.
        """

    @abstractmethod
    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        """The object that `decode_companion` reads. CorruptError if the metadata names none."""

    @abstractmethod
    def decode_companion(self, content: bytes) -> Companion:
        """Read the companion object. Raises CorruptError, UnsupportedError."""
