"""The metadata of one stored log segment: KIP-405's RemoteLogSegmentMetadata, and its states.

A log may be divided into several objects, its chunks (PDP-34). Their keys are one prefix and the
chunk's number, in five digits: `….log.00000`, `….log.00001`, …. Metadata lists them first.
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
    """KIP-405's RemoteLogSegmentState; the values give the order of a segment's life."""

    COPY_SEGMENT_STARTED = 1
    COPY_SEGMENT_FINISHED = 2
    DELETE_SEGMENT_STARTED = 3
    DELETE_SEGMENT_FINISHED = 4

    # The fold looks states up for each event, and Enum's own hash of the name is slow.
    __hash__ = object.__hash__


CHUNKS_MAX_COUNT = 10_000
"""The greatest number of chunks of one segment."""

_FIRST_NUMBER = "00000"


def chunk_key(prefix: str, number: int) -> str:
    """Return the key of a chunk, for the chunks' common prefix."""
    return f"{prefix}{number:05d}"


def chunk_prefix(first_key: str) -> str | None:
    """Return the common prefix of chunks from the first chunk's key; None for any other key."""
    prefix = first_key.removesuffix(_FIRST_NUMBER)
    return prefix if prefix != first_key and prefix.endswith(".") else None


def leading_chunks(keys: Sequence[str]) -> int:
    """Return how many keys at the beginning are those of chunks."""
    prefix = chunk_prefix(keys[0]) if keys else None
    if prefix is None:
        return 0
    last = min(len(keys), CHUNKS_MAX_COUNT)
    return next((n for n in range(last) if keys[n] != chunk_key(prefix, n)), last)


def unwritten_chunks(planned: Sequence[str], written: Collection[str]) -> frozenset[str]:
    """Return the last planned chunks that were not written, but never the first chunk."""
    chunks = planned[1 : leading_chunks(planned)]
    return frozenset(takewhile(lambda key: key not in written, reversed(chunks)))


def short_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Return keys for people, with several chunks as one entry: `….log.{00000..00012}`."""
    count = leading_chunks(keys)
    if count <= 1:
        return tuple(keys)
    prefix = keys[0].removesuffix(_FIRST_NUMBER)
    return (f"{prefix}{{{_FIRST_NUMBER}..{count - 1:05d}}}", *keys[count:])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """One object of a segment. Length and checksum are None until it has been written."""

    key: str
    length_bytes: int | None = None
    crc32c: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkBounds:
    """The number of a log's chunks, and the end position of each chunk written so far."""

    count: int
    ends: tuple[int, ...]


def chunk_bounds(objects: Sequence[StoredObject]) -> ChunkBounds:
    """Find the chunks of a segment by its objects."""
    count = leading_chunks([each.key for each in objects])
    lengths = takewhile(lambda n: n is not None, (each.length_bytes for each in objects[:count]))
    return ChunkBounds(count=count, ends=tuple(accumulate(length or 0 for length in lengths)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The process that made a decision; `incarnation` names one run of it."""

    broker_id: int
    leader_epoch: int
    incarnation: UUID


class _Derived:
    """The cache of the values that metadata derives from its fields at the first access."""

    __slots__ = ("_chunks",)

    _chunks: ChunkBounds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteLogSegmentMetadata(_Derived):
    """The metadata of one log segment; each record of the segment contains all of it. Immutable.

    `offsets` are [base offset, next segment's base offset). `segment_leader_epochs` are the lineage
    within them. They begin above the base offset if the log start was inside the segment; the
    offsets below are not readable. `objects` are named before the first byte is written, and
    `layout` names their layout. A finished segment has only the chunks that were written; an
    unfinished one has all that may be written. `custom_metadata` are the storage manager's own
    bytes (KIP-917). `unknown_fields` are a newer version's protobuf fields; `in_state` keeps them.
    `is_open`: the copy started before the segment's end was known. Then `offsets` contain only the
    base offset, and the size is 0; the finished state has the true values. Metadata with equal
    fields is equal, also if it is of a subclass.
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
            raise ValueError(f"a segment without offsets: {self.offsets}")
        if not self.segment_leader_epochs:
            raise ValueError("a segment without leader epochs")
        if self.segment_leader_epochs.entries[0].start_offset < self.offsets.start_offset:
            raise ValueError("leader epochs begin below the segment's base offset")
        if self.segment_leader_epochs.entries[-1].start_offset >= self.offsets.end_offset:
            raise ValueError("leader epochs reach beyond the segment's end")
        if self.segment_size_bytes < 0:
            raise ValueError(f"negative size {self.segment_size_bytes}")
        if self.is_open and not may_be_open(self.state, len(self.offsets), self.segment_size_bytes):
            raise ValueError("an open segment is finished, or has an end or a size")

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return self.segment_id.topic_id_partition

    @property
    def object_keys(self) -> tuple[str, ...]:
        """The keys of all objects that the record names, in the order of writing."""
        return tuple(stored.key for stored in self.objects)

    @property
    def chunks(self) -> ChunkBounds:
        """The bounds of the log's chunks, derived once: each read of the segment needs them."""
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
        """Return the same segment in another state; without `writer`, with the same writer."""
        return replace(
            self,
            state=state,
            event_timestamp_ms=event_timestamp_ms,
            writer=self.writer if writer is None else writer,
        )


def may_be_open(state: SegmentState, offset_count: int, size_bytes: int) -> bool:
    """Return whether the metadata of a segment without a known end may have these values."""
    is_finished = state is SegmentState.COPY_SEGMENT_FINISHED
    return not is_finished and offset_count == 1 and size_bytes == 0


_values = attrgetter(*(each.name for each in fields(RemoteLogSegmentMetadata)))
