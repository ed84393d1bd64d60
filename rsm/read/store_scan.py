"""Finds a topic's segments in a store from its listing and the companions alone.

A scan needs no metadata topic, broker or cache. Copies write the companion last, and deletions
delete it last. So the objects of an attempt show the attempt's state:

    companion, and all other objects in their recorded lengths    complete: the segment counts
    no companion                                                  the upload has not finished
    companion, and another object is missing                      deletion unfinished or object lost
    wrong companion, layout not configured, or a wrong length     unreadable, with an error

The lineage decides which offsets of complete segments belong to the log. Each companion contains
the log's leader epochs at the time of the copy. The companion of the highest leader epoch decides;
among several, the one with the highest end offset. Older companions only add epochs below its first
epoch. Companions of unfinished deletions count for the lineage, too.

Memory: one companion for each of `_AHEAD_COUNT` + 1 requests, and each segment's metadata.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from rsm.layout.keys import (
    ObjectKeys,
    SegmentKey,
    StreamedKey,
    after_all_below,
    numbered_chunk,
)
from rsm.layout.segment_layout import SegmentLayout, with_chunks
from rsm.object_reader import require_readable_whole
from rsm.segment.epochs import Lineage, stitch
from rsm.segment.errors import (
    CorruptError,
    NotFoundError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject
from rsm.segment.ranges import ByteRange, OffsetRange
from rsm.storage.chunk_storage import ChunkInfo, ChunkStorage

_AHEAD_COUNT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableSegment:
    """Represents a segment that cannot be read, and the reason.

    It may contain the offsets from `from_offset` up to, but not including, `end_offset`. If its
    companion is damaged, `end_offset` is None, and `from_offset` is its base offset; 0 if its keys
    do not name the base offset.
    """

    error: TieredStorageError
    from_offset: int = 0
    end_offset: int | None = None

    def may_have(self, offset: int) -> bool:
        """Return whether the segment may contain this offset."""
        return self.from_offset <= offset and (self.end_offset is None or offset < self.end_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyDeletedSegment:
    """Represents a segment that has a companion, but lacks the object `missing_key`.

    Its deletion has not finished, or the object is lost.
    """

    offsets: OffsetRange
    missing_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionScan:
    """Represents what a store contains of one partition.

    `segments` are complete, have the state COPY_SEGMENT_FINISHED, and are in order of preference:
    the highest leader epoch first, then the newest, then the lowest id. `unfinished_keys` contains
    one key of each attempt without a companion.
    """

    topic_id_partition: TopicIdPartition
    segments: tuple[RemoteLogSegmentMetadata, ...]
    lineage: Lineage
    unreadable: tuple[UnreadableSegment, ...]
    partly_deleted: tuple[PartlyDeletedSegment, ...]
    unfinished_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """Represents the listed objects of one attempt to store a segment, by key."""

    segment_id: RemoteLogSegmentId
    objects: Mapping[SegmentKey, ChunkInfo]

    @property
    def base_offset(self) -> int:
        """Return the base offset that the keys name; 0 if they name none."""
        return next((k.base_offset for k in self.objects if not isinstance(k, StreamedKey)), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Described:
    """Represents a segment with a readable companion; `missing_key` names an absent object."""

    metadata: RemoteLogSegmentMetadata
    lineage: Lineage
    missing_key: str | None
    unreadable: UnreadableSegment | None

    @property
    def is_complete(self) -> bool:
        return self.missing_key is None and self.unreadable is None


class StoreScan:
    """Finds the segments of one store by the store's objects. Thread-safe.

    Does not close the storage. All methods raise the errors of the listing.
    """

    def __init__(
        self, storage: ChunkStorage, keys: ObjectKeys, layouts: Sequence[SegmentLayout]
    ) -> None:
        self._storage = storage
        self._keys = keys
        self._layouts = tuple(layouts)

    def topic_ids(self, topic: str) -> tuple[UUID, ...]:
        """Return the ids of all topics with this name that have objects in the store."""
        prefix = self._keys.name_prefix(topic)
        found = self._partitions(
            prefix, lambda each: self._keys.topic_prefix(each.topic, each.topic_id)
        )
        return tuple(each.topic_id for each in found if each.topic == topic)

    def partitions(self, topic: str, topic_id: UUID) -> tuple[TopicIdPartition, ...]:
        """Return the partitions of a topic that have objects in the store, ascending."""
        prefix = self._keys.topic_prefix(topic, topic_id)
        found = self._partitions(prefix, self._keys.partition_prefix)
        return tuple(sorted(found, key=attrgetter("partition")))

    def partition(self, topic_id_partition: TopicIdPartition, executor: Executor) -> PartitionScan:
        """Return the segments of a partition; `executor` reads the companions.

        Raises RetriableError if the store cannot be read.
        """
        described: list[_Described] = []
        unreadable: list[UnreadableSegment] = []
        unfinished_keys: list[str] = []
        lineages: dict[Lineage, Lineage] = {}
        attempts = self._attempts(topic_id_partition)
        for found in _in_order(executor, self._describe, attempts):
            if isinstance(found, UnreadableSegment):
                unreadable.append(found)
            elif isinstance(found, str):
                unfinished_keys.append(found)
            else:
                lineage = lineages.setdefault(found.lineage, found.lineage)
                described.append(replace(found, lineage=lineage))
                if found.missing_key is None and found.unreadable is not None:
                    unreadable.append(found.unreadable)
        complete = (each.metadata for each in described if each.is_complete)
        return PartitionScan(
            topic_id_partition=topic_id_partition,
            segments=tuple(sorted(complete, key=_preferred_first)),
            lineage=_joined_lineage(described),
            unreadable=tuple(unreadable),
            partly_deleted=tuple(
                PartlyDeletedSegment(offsets=each.metadata.offsets, missing_key=each.missing_key)
                for each in described
                if each.missing_key is not None
            ),
            unfinished_keys=tuple(unfinished_keys),
        )

    def _partitions(
        self, prefix: str, below: Callable[[TopicIdPartition], str]
    ) -> Iterator[TopicIdPartition]:
        """Yield the first partition under each prefix that `below` returns; list once for each."""
        after = ""
        while (key := self._first_key(prefix, after)) is not None:
            partition = key.segment_id.topic_id_partition
            yield partition
            after = after_all_below(below(partition))

    def _first_key(self, prefix: str, after: str) -> SegmentKey | None:
        keys = (self._keys.parse(each.name) for each in self._storage.list(prefix, after=after))
        return next((key for key in keys if key is not None), None)

    def _attempts(self, topic_id_partition: TopicIdPartition) -> Iterator[_Attempt]:
        """Yield attempts in the order of the listing, where an attempt's objects are adjacent."""
        listed = self._storage.list(self._keys.partition_prefix(topic_id_partition))
        parsed = ((self._keys.parse(each.name), each) for each in listed)
        known = ((key, each) for key, each in parsed if key is not None)
        for segment_id, objects in groupby(known, lambda each: each[0].segment_id):
            yield _Attempt(segment_id=segment_id, objects=dict(objects))

    def _describe(self, attempt: _Attempt) -> _Described | UnreadableSegment | str:
        """Return the segment of an attempt, readable or not; a key if there is no companion."""
        planned_by = [
            (layout, layout.object_keys(attempt.segment_id, attempt.base_offset))
            for layout in self._layouts
        ]
        candidates = [each for each in planned_by if each[1][-1] in attempt.objects]
        any_key = next(iter(attempt.objects.values())).name
        if not candidates:
            present = {numbered_chunk(key, 0) for key in attempt.objects}
            if any(key in present for _, planned in planned_by for key in planned):
                return any_key
            return UnreadableSegment(
                error=_unknown_layout(attempt, any_key), from_offset=attempt.base_offset
            )
        companion_key = self._keys.build(candidates[0][1][-1])
        try:
            return self._read(attempt, candidates)
        except NotFoundError:
            return any_key  # The companion was deleted after the listing.
        except (CorruptError, UnsupportedError) as error:
            return UnreadableSegment(
                error=type(error)(
                    "a stored segment cannot be read from its companion",
                    segment_id=attempt.segment_id,
                    key=error.context.get("key", companion_key),
                    reason=error,
                ),
                from_offset=attempt.base_offset,
            )

    def _read(
        self, attempt: _Attempt, candidates: Sequence[tuple[SegmentLayout, Sequence[SegmentKey]]]
    ) -> _Described:
        """Read the companion with its own layout. Raises the errors that `_describe` catches."""
        first_error: TieredStorageError | None = None
        contents: dict[SegmentKey, bytes] = {}  # Layouts may share a companion key.
        for layout, planned in candidates:
            if planned[-1] not in contents:
                info = attempt.objects[planned[-1]]
                require_readable_whole(info.name, info.length_bytes)
                positions = ByteRange(start_position=0, end_position=info.length_bytes)
                contents[planned[-1]] = self._storage.read_range(info.name, positions)
            content = contents[planned[-1]]
            try:
                companion = layout.decode_companion(content)
            except (CorruptError, UnsupportedError) as error:
                first_error = first_error or error
                continue
            if companion.metadata.layout == layout.name:
                count = layout.log_count(companion.metadata.object_keys)
                recorded_keys = with_chunks(planned, count)
                metadata = self._finished(attempt, companion.metadata, recorded_keys)
                lengths = {each.name: each.length_bytes for each in attempt.objects.values()}
                absent = (key for key in metadata.object_keys if key not in lengths)
                return _Described(
                    metadata=metadata,
                    lineage=companion.companions.lineage,
                    missing_key=next(absent, None),
                    unreadable=_wrong_length(metadata, lengths),
                )
        raise first_error or _unknown_layout(attempt, self._keys.build(candidates[0][1][-1]))

    def _finished(
        self,
        attempt: _Attempt,
        recorded: RemoteLogSegmentMetadata,
        planned: Sequence[SegmentKey],
    ) -> RemoteLogSegmentMetadata:
        """Return the segment's metadata as finished, with its objects' names in this store.

        The store may be a copy below another prefix, so only the last part of a recorded name must
        match. Raises CorruptError if the companion does not describe the attempt.
        """
        by_name = {_last_part(each.key): each for each in recorded.objects}
        keys = [self._keys.build(each) for each in planned]
        if recorded.segment_id != attempt.segment_id:
            raise CorruptError(
                "the companion belongs to another segment", key=keys[-1], found=recorded.segment_id
            )
        if recorded.is_open:
            raise CorruptError("the companion describes an open segment", key=keys[-1])
        if by_name.keys() != {_last_part(key) for key in keys}:
            raise CorruptError("the companion names other objects", key=keys[-1])
        objects = [replace(by_name[_last_part(key)], key=key) for key in keys]
        companion_bytes = attempt.objects[planned[-1]].length_bytes
        objects[-1] = StoredObject(key=keys[-1], length_bytes=companion_bytes)
        return replace(recorded, state=SegmentState.COPY_SEGMENT_FINISHED, objects=tuple(objects))


def _unknown_layout(attempt: _Attempt, key: str) -> UnsupportedError:
    return UnsupportedError(
        "a stored segment has a layout that is not configured",
        segment_id=attempt.segment_id,
        key=key,
    )


def _wrong_length(
    metadata: RemoteLogSegmentMetadata, lengths: Mapping[str, int]
) -> UnreadableSegment | None:
    for stored in metadata.objects:
        found = lengths.get(stored.key)
        if found is not None and stored.length_bytes not in (None, found):
            error = CorruptError(
                "a stored object's length differs from the companion's record",
                segment_id=metadata.segment_id,
                key=stored.key,
                position=min(found, stored.length_bytes or 0),
                expected_bytes=stored.length_bytes,
                found_bytes=found,
            )
            offsets = metadata.offsets
            return UnreadableSegment(
                error=error, from_offset=offsets.start_offset, end_offset=offsets.end_offset
            )
    return None


def _joined_lineage(described: Iterable[_Described]) -> Lineage:
    """Join the lineages; where two contradict each other, the one that sorts last decides."""
    ordered = sorted(
        described,
        key=lambda each: (
            each.metadata.writer.leader_epoch,
            each.metadata.offsets.end_offset,
            each.metadata.event_timestamp_ms,
            each.metadata.segment_id.id,
        ),
    )
    distinct = (lineage for lineage, _ in groupby(each.lineage for each in ordered))
    return reduce(lambda older, newer: stitch(older, newer).lineage, distinct, Lineage())


def _preferred_first(metadata: RemoteLogSegmentMetadata) -> tuple[int, int, UUID]:
    return -metadata.writer.leader_epoch, -metadata.event_timestamp_ms, metadata.segment_id.id


def _in_order(
    executor: Executor,
    describe: Callable[[_Attempt], _Described | UnreadableSegment | str],
    attempts: Iterable[_Attempt],
) -> Iterator[_Described | UnreadableSegment | str]:
    """Yield the results in the attempts' order; read `_AHEAD_COUNT` ahead of the consumer."""
    ahead: deque[Future[_Described | UnreadableSegment | str]] = deque()
    try:
        for attempt in attempts:
            ahead.append(executor.submit(describe, attempt))
            if len(ahead) > _AHEAD_COUNT:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        for future in ahead:
            future.cancel()


def _last_part(key: str) -> str:
    return key.rpartition("/")[2]
