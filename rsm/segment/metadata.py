"""Represents the metadata of a stored log segment (KIP-405's RemoteLogSegmentMetadata).

A log may be divided into several objects, its chunks (PDP-34). A chunk's key is a common prefix and
the chunk's number, in five digits: `….log.00000`, `….log.00001`, …. The metadata lists the chunks
before all other objects.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from itertools import accumulate, takewhile
from operator import attrgetter
from uuid import UUID

from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.ranges import OffsetRange


class SegmentState(Enum):
    """Represents KIP-405's RemoteLogSegmentState; a segment's states have ascending values."""

    COPY_SEGMENT_STARTED = 1
    COPY_SEGMENT_FINISHED = 2
    DELETE_SEGMENT_STARTED = 3
    DELETE_SEGMENT_FINISHED = 4

    # The fold looks states up for each event, and Enum's own hash of the name is slow.
    __hash__ = object.__hash__


CHUNKS_MAX_COUNT = 10_000
"""The maximum number of chunks of a segment."""

_FIRST_NUMBER = "00000"


def chunk_key(prefix: str, number: int) -> str:
    """Return the key of a chunk from the chunks' common prefix and the chunk's number."""
    return f"{prefix}{number:05d}"


def chunk_prefix(first_key: str) -> str | None:
    """Return the chunks' common prefix from the first chunk's key; None for any other key."""
    prefix = first_key.removesuffix(_FIRST_NUMBER)
    return prefix if prefix != first_key and prefix.endswith(".") else None


def leading_chunks(keys: Sequence[str]) -> int:
    """Return how many keys at the beginning belong to chunks."""
    prefix = chunk_prefix(keys[0]) if keys else None
    if prefix is None:
        return 0
    last = min(len(keys), CHUNKS_MAX_COUNT)
    return next((n for n in range(last) if keys[n] != chunk_key(prefix, n)), last)


def unwritten_chunks(planned: Sequence[str], written: Collection[str]) -> frozenset[str]:
    """Return the planned chunks after the last written one; never the first chunk."""
    chunks = planned[1 : leading_chunks(planned)]
    return frozenset(takewhile(lambda key: key not in written, reversed(chunks)))


def short_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Return keys for a person to read. Several chunks become one: `….log.{00000..00012}`."""
    count = leading_chunks(keys)
    if count <= 1:
        return tuple(keys)
    prefix = keys[0].removesuffix(_FIRST_NUMBER)
    return (f"{prefix}{{{_FIRST_NUMBER}..{count - 1:05d}}}", *keys[count:])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """Represents one object of a segment. Length and checksum may be None until it is written."""

    key: str
    length_bytes: int | None = None
    crc32c: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkBounds:
    """Represents the number of a log's chunks, and the end positions of those with a length."""

    count: int
    ends: tuple[int, ...]


def chunk_bounds(objects: Sequence[StoredObject]) -> ChunkBounds:
    """Return the bounds of a segment's chunks, which are its first objects."""
    count = leading_chunks([each.key for each in objects])
    lengths = takewhile(lambda n: n is not None, (each.length_bytes for each in objects[:count]))
    return ChunkBounds(count=count, ends=tuple(accumulate(length or 0 for length in lengths)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Identifies the process that made a decision; `incarnation` names one run of the process."""

    broker_id: int
    leader_epoch: int
    incarnation: UUID


class _Derived:
    """Caches the values that metadata derives from its fields at the first access."""

    __slots__ = ("_chunks",)

    _chunks: ChunkBounds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteLogSegmentMetadata(_Derived):
    """Represents all metadata of one log segment; each record of the segment has it. Immutable.

    `offsets` are [base offset, next segment's base offset). `segment_leader_epochs` is the lineage
    within `offsets`. It begins above the base offset if the log start was inside the segment; the
    offsets below its first entry are not readable. `objects` are named before the first byte is
    written, and `layout` names their layout. A finished segment names only the written
    chunks; an unfinished one names all that may be written. `custom_metadata` contains the storage
    manager's own bytes (KIP-917). `unknown_fields` contains the protobuf fields of a newer version;
    `in_state` keeps them.

    If `is_open` is true, the copy started before the segment's end was known. Then `offsets`
    contains only the base offset, and the size is 0; the finished state has the actual values.
    Metadata with equal fields is equal, even if one is an instance of a subclass.
    """

    segment_id: RemoteLogSegmentId
    offsets: OffsetRange
    max_timestamp_ms: int
    segment_size_bytes: int
    segment_leader_epochs: Lineage
    state: SegmentState
    writer: Writer
    event_timestamp_ms: int
    layout: str
    objects: tuple[StoredObject, ...]
    has_transaction_index: bool = False
    custom_metadata: bytes = b""
    is_open: bool = False
    unknown_fields: bytes = b""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RemoteLogSegmentMetadata):
            return NotImplemented
        return bool(_values(self) == _values(other))

    def __hash__(self) -> int:
        return hash(_values(self))

    def __post_init__(self) -> None:
        if not len(self.offsets):
            raise ValueError(f"the segment is invalid: it has no offsets ({self.offsets})")
        if not self.segment_leader_epochs:
            raise ValueError("the segment is invalid: it has no leader epochs")
        if self.segment_leader_epochs.entries[0].start_offset < self.offsets.start_offset:
            raise ValueError("the leader epochs begin below the segment's base offset")
        if self.segment_leader_epochs.entries[-1].start_offset >= self.offsets.end_offset:
            raise ValueError("the last leader epoch begins at or above the segment's end")
        if self.segment_size_bytes < 0:
            raise ValueError(f"the segment's size is negative: {self.segment_size_bytes}")
        if self.is_open and not may_be_open(self.state, len(self.offsets), self.segment_size_bytes):
            raise ValueError("the open segment is invalid: it is finished, or has an end or a size")

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return self.segment_id.topic_id_partition

    @property
    def object_keys(self) -> tuple[str, ...]:
        """Return the keys of all objects that the metadata names, in the order of writing."""
        return tuple(stored.key for stored in self.objects)

    @property
    def chunks(self) -> ChunkBounds:
        """Return the bounds of the log's chunks, derived once because each read needs them."""
        try:
            return self._chunks
        except AttributeError:
            found = chunk_bounds(self.objects)
        object.__setattr__(self, "_chunks", found)
        return found

    def in_state(
        self,
        state: SegmentState,
        *,
        event_timestamp_ms: int,
        writer: Writer | None = None,
    ) -> RemoteLogSegmentMetadata:
        """Return the same segment in another state, by default with the same writer."""
        return replace(
            self,
            state=state,
            event_timestamp_ms=event_timestamp_ms,
            writer=self.writer if writer is None else writer,
        )


def may_be_open(state: SegmentState, offset_count: int, size_bytes: int) -> bool:
    """Return whether these values are valid for a segment whose end is not known."""
    is_finished = state is SegmentState.COPY_SEGMENT_FINISHED
    return not is_finished and offset_count == 1 and size_bytes == 0


_values = attrgetter(*(each.name for each in fields(RemoteLogSegmentMetadata)))
