"""Layout `chunked`: plans, ranges across chunks, and chunks that do not match the segment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, SupportsIndex

import pytest

from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.object_reader import ObjectReader
from rsm.segment.errors import CorruptError, InvalidConfigError
from rsm.segment.metadata import CHUNKS_MAX_COUNT, RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange
from rsm.spi import PlannedObjects
from rsm.storage.memory import MemoryChunkStorage
from tests.contract.segments import (
    COMPANIONS,
    LOG,
    OFFSETS,
    CountedAttempt,
    copied,
    finished,
    planned,
    segment_data,
)

CHUNK_BYTES = 100
STORAGE = MemoryChunkStorage(wall_ms=lambda: 0)
OBJECTS = ObjectReader(STORAGE, decoded_bytes=0)


def manager_of(storage: MemoryChunkStorage, chunk_bytes: int) -> SegmentStorageManager:
    layout = ChunkedLayout(max_chunk_bytes=chunk_bytes)
    return SegmentStorageManager(storage=storage, keys=ObjectKeys(), layouts=[layout, RawLayout()])


class VisitedObjects(tuple[StoredObject, ...]):  # noqa: SLOT001 - it counts
    """The objects of a segment; counts how often each one was visited."""

    def __init__(self, _: Iterable[StoredObject]) -> None:
        self.counts: Counter[SupportsIndex | str] = Counter()

    def __getitem__(self, at: SupportsIndex | slice) -> Any:
        self.counts["slice" if isinstance(at, slice) else at] += 1
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[StoredObject]:
        for number, each in enumerate(super().__iter__()):
            self.counts[number] += 1
            yield each


LAYOUT = ChunkedLayout(max_chunk_bytes=CHUNK_BYTES)
STORED = copied(manager_of(STORAGE, CHUNK_BYTES))


@pytest.mark.parametrize(
    ("log_bytes", "count"), [(0, 1), (1, 1), (100, 1), (101, 2), (1_000_000, 10_000)]
)
def test_plan_when_the_log_may_have_a_length_then_all_chunks_of_it_and_the_companion(
    log_bytes: int, count: int
) -> None:
    keys = [
        each.key
        for each in LAYOUT.plan(
            ObjectKeys(prefix="p"), STORED.segment_id, OFFSETS.start_offset, log_bytes=log_bytes
        )
    ]

    assert len(keys) == count + 1
    assert keys[0].endswith("/00000000000000001000-AAAAAAAAAAAAAAAAAAAAAQ.log.00000")
    assert keys[-2].endswith(f".log.{count - 1:05d}")
    assert keys[-1].endswith(".meta")
    assert all(ObjectKeys(prefix="p").parse(key) is not None for key in keys)


def test_plan_when_the_log_may_have_too_many_chunks_then_refused() -> None:
    with pytest.raises(InvalidConfigError, match="too many chunks"):
        LAYOUT.plan(
            ObjectKeys(),
            STORED.segment_id,
            OFFSETS.start_offset,
            log_bytes=CHUNKS_MAX_COUNT * CHUNK_BYTES + 1,
        )


def test_chunks_when_stored_then_the_bytes_of_the_log_and_all_but_the_last_are_full() -> None:
    *chunks, _ = STORED.objects

    contents = [
        STORAGE.read_range(each.key, ByteRange(start_position=0, end_position=1 << 40))
        for each in chunks
    ]

    assert b"".join(contents) == LOG
    assert {len(each) for each in contents[:-1]} == {CHUNK_BYTES}


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 5), (0, 10**9), (99, 101), (100, 200), (50, 250), (len(LOG), 10**9), (4, 4), (100, 100)],
)
def test_locate_when_the_range_is_any_then_the_parts_of_the_chunks(start: int, end: int) -> None:
    positions = ByteRange(start_position=start, end_position=end)

    located = LAYOUT.locate(STORED, positions, OBJECTS)

    pieces = [STORAGE.read_range(each.key, each.positions) for each in located.ranges]
    assert located.join is None
    assert b"".join(pieces) == LOG[start:end]
    assert all(pieces)


def test_locate_when_the_configured_size_is_another_then_by_the_record() -> None:
    other = ChunkedLayout(max_chunk_bytes=7)
    positions = ByteRange(start_position=50, end_position=250)

    assert other.locate(STORED, positions, OBJECTS) == LAYOUT.locate(STORED, positions, OBJECTS)


@pytest.mark.parametrize(
    "changed",
    [
        replace(STORED, segment_size_bytes=len(LOG) + 1),
        replace(STORED, segment_size_bytes=0),
        replace(STORED, objects=STORED.objects[1:]),
        replace(STORED, objects=(STORED.objects[0], *STORED.objects[2:])),
        replace(STORED, objects=STORED.objects[:-1]),
        replace(STORED, objects=STORED.objects[-1:]),
        replace(STORED, objects=(*STORED.objects, STORED.objects[-1])),
        replace(STORED, objects=tuple(StoredObject(key=each.key) for each in STORED.objects)),
    ],
)
def test_locate_when_the_chunks_are_not_the_segment_then_corrupt(
    changed: RemoteLogSegmentMetadata,
) -> None:
    with pytest.raises(CorruptError):
        LAYOUT.locate(changed, ByteRange(start_position=0, end_position=5), OBJECTS)


def test_locate_when_the_segment_was_read_before_then_only_its_own_chunks_are_visited() -> None:
    count = 1000
    prefix = STORED.objects[0].key.removesuffix("00000")
    visited = VisitedObjects(
        (
            *(StoredObject(key=f"{prefix}{n:05d}", length_bytes=10) for n in range(count)),
            STORED.objects[-1],
        )
    )
    metadata = replace(STORED, objects=visited, segment_size_bytes=10 * count)
    positions = ByteRange(start_position=5_005, end_position=5_025)
    LAYOUT.locate(metadata, positions, OBJECTS)
    visited.counts.clear()

    located = LAYOUT.locate(metadata, positions, OBJECTS)

    assert [each.key.rpartition(".")[2] for each in located.ranges] == ["00500", "00501", "00502"]
    assert visited.counts.total() == len(located.ranges) + 1  # and the companion


def test_seal_when_more_chunks_were_planned_then_only_those_written_are_recorded() -> None:
    """A stream plans its greatest length; unwritten chunks are not missing afterwards."""
    storage = MemoryChunkStorage(wall_ms=lambda: 0)
    manager = manager_of(storage, CHUNK_BYTES)
    metadata = planned(manager)
    more = manager.plan_streamed_objects(
        metadata.segment_id, OFFSETS.start_offset, most_bytes=10 * len(LOG)
    )
    writer = manager.open_segment_writer(metadata.segment_id, more, CountedAttempt())
    writer.append(memoryview(LOG))

    sealed = finished(metadata, writer.seal(replace(metadata, objects=more.objects), COMPANIONS))

    assert len(more.objects) > len(sealed.objects)
    assert [each.key for each in sealed.objects] == list(metadata.object_keys)
    assert sorted(info.name for info in storage.list("")) == sorted(sealed.object_keys)
    assert manager.check_objects(sealed, read=True, attempt=CountedAttempt()) == ()
    companion = LAYOUT.decode_companion(
        storage.read_range(
            sealed.objects[-1].key, ByteRange(start_position=0, end_position=1 << 20)
        )
    )
    assert companion.metadata.objects[:-1] == sealed.objects[:-1]


@pytest.mark.parametrize("chunk_count", [1, 2])
def test_append_when_the_log_exceeds_the_plan_then_corrupt_and_nothing_is_left(
    chunk_count: int,
) -> None:
    storage = MemoryChunkStorage(wall_ms=lambda: 0)
    manager = manager_of(storage, CHUNK_BYTES)
    metadata = planned(manager)
    fewer = PlannedObjects(
        layout=metadata.layout,
        objects=(*metadata.objects[:chunk_count], metadata.objects[-1]),
    )
    writer = manager.open_segment_writer(metadata.segment_id, fewer, CountedAttempt())

    with pytest.raises(CorruptError, match="longer than planned"):
        writer.append(memoryview(LOG))

    assert list(storage.list("")) == []


def test_copy_when_the_log_exceeds_the_plan_then_corrupt_and_nothing_is_left() -> None:
    storage = MemoryChunkStorage(wall_ms=lambda: 0)
    manager = manager_of(storage, CHUNK_BYTES)
    metadata = planned(manager)
    fewer = replace(metadata, objects=(*metadata.objects[:2], metadata.objects[-1]))

    with pytest.raises(CorruptError, match="longer than planned"):
        manager.copy_log_segment_data(fewer, segment_data(), CountedAttempt())

    assert list(storage.list("")) == []


def test_stream_when_the_topics_layout_has_no_chunks_then_in_the_layout_of_streams() -> None:
    manager = SegmentStorageManager(
        storage=STORAGE,
        keys=ObjectKeys(),
        layouts=[RawLayout(), LAYOUT],
        stream_layout=BlockV2Layout(),
    )

    layouts = [
        manager.plan_streamed_objects(STORED.segment_id, 0, most_bytes=1, layout=layout).layout
        for layout in (None, "chunked", "raw", "other:Layout")
    ]

    assert layouts == ["block_v2", "chunked", "block_v2", "block_v2"]
