"""A scan of given segments: where it starts and ends, and what it fetches ahead."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.read.segment_scan import RemoteScanner, ScanSettings
from rsm.segment.batches.segment_cursor import StoredBatches
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError, RetriableError
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import ByteRange, OffsetRange
from rsm.spi import IndexType
from tests.remote_world import RemoteWorld, bytes_of, positions_of, segment_of


@pytest.fixture
def world() -> RemoteWorld:
    return RemoteWorld()


def stored(world: RemoteWorld, *base_offsets: int) -> list[tuple[StoredRange, int]]:
    """Store segments of 100 offsets and about 100 KB, each to be read from its start."""
    segments = [world.store(segment_of(base)) for base in base_offsets]
    return [
        (StoredRange(metadata=each, offsets=each.offsets), each.offsets.start_offset)
        for each in segments
    ]


def scanner(world: RemoteWorld, *, ahead_count: int = 0) -> RemoteScanner:
    settings = ScanSettings(fetch_bytes=1 << 16, ahead_count=ahead_count)
    return RemoteScanner(world.storage, world.executor, settings)


def test_scan_when_fetches_run_on_threads_then_the_same(world: RemoteWorld) -> None:
    segments = stored(world, 0, 100, 200)
    settings = ScanSettings(fetch_bytes=65_536, ahead_count=2)
    with ThreadPoolExecutor(2) as executor:
        scan = RemoteScanner(world.storage, executor, settings).scan(segments, 0)

        content = bytes_of(list(scan))

    assert content == b"".join(segment_of(base).log for base in (0, 100, 200))
    assert scan.next_offset == 300


def test_scan_when_started_inside_a_segment_then_reads_from_the_index_entry_on(
    world: RemoteWorld,
) -> None:
    ((segment, _),) = stored(world, 0)

    runs = list(scanner(world).scan([(segment, 95)], 95))

    assert [run.offsets for run in runs] == [OffsetRange(start_offset=90, end_offset=100)]
    assert world.executor.submitted_count == 1


def test_scan_when_end_is_inside_a_segment_then_fetches_no_more_of_it(world: RemoteWorld) -> None:
    runs = list(scanner(world).scan(stored(world, 0), 0, 5))

    assert runs[0].offsets.start_offset == 0
    assert world.executor.submitted_count == 1


def test_scan_when_consumer_stops_then_at_most_one_fetch_was_ahead(world: RemoteWorld) -> None:
    """Memory is bounded: what nobody has asked for is fetched one piece ahead at most."""
    segments = stored(world, *range(0, 1000, 100))

    next(iter(scanner(world, ahead_count=1).scan(segments, 0)))

    assert world.executor.submitted_count == 2


def test_scan_when_the_callers_fetch_fails_then_its_error_after_all_batches_before(
    world: RemoteWorld,
) -> None:
    def fetch(metadata: RemoteLogSegmentMetadata, positions: ByteRange) -> bytes:
        if positions.start_position:
            raise RetriableError("the store is slow")
        return world.storage.fetch_log_segment(metadata, positions)

    settings = ScanSettings(fetch_bytes=1 << 16)
    reader = RemoteScanner(world.storage, world.executor, settings, fetch=fetch)
    scan = reader.scan(stored(world, 0), 0)
    runs: list[StoredBatches] = []

    with pytest.raises(RetriableError, match="slow"):
        runs.extend(scan)

    assert scan.next_offset == runs[-1].offsets.end_offset
    assert 0 < scan.next_offset < 100


@pytest.mark.parametrize("end", [15, 31, 50, 89])
def test_scan_when_it_ends_inside_a_segment_then_fetches_little_after_its_last_batch(
    world: RemoteWorld, end: int
) -> None:
    """The index gives the end; little is fetched ahead after it."""
    ((segment, _),) = stored(world, 0)
    fetched: list[ByteRange] = []

    def fetch(metadata: RemoteLogSegmentMetadata, positions: ByteRange) -> bytes:
        fetched.append(positions)
        return world.storage.fetch_log_segment(metadata, positions)

    reader = RemoteScanner(world.storage, world.executor, ScanSettings(), fetch=fetch)
    runs = list(reader.scan([(segment, 11)], 11, end))

    batches = positions_of(segment_of(0))
    first, ahead = fetched
    last = (end + 9) // 10
    assert batches[last] <= first.end_position <= batches[last + 1]
    assert len(ahead) <= 1 << 16
    assert runs[-1].offsets.end_offset >= end


@pytest.mark.parametrize("position", [-5, 0, 1, 20_001, 1 << 30])
def test_scan_when_the_index_is_wrong_about_the_end_then_the_same_batches(
    world: RemoteWorld, position: int
) -> None:
    """Only the entry at which the scan starts has to be right."""
    ((segment, _),) = stored(world, 0)
    entries = [(5, 0), (55, position), (56, position), (57, position)]
    index = b"".join(struct.pack(">ii", *each) for each in entries)
    reader = RemoteScanner(IndexManager(world, index), world.executor, ScanSettings())

    runs = list(reader.scan([(segment, 11)], 11, 54))

    assert runs[0].offsets.start_offset == 10
    assert runs[-1].offsets.end_offset >= 54
    assert [run.offsets.start_offset for run in runs[1:]] == [
        run.offsets.end_offset for run in runs[:-1]
    ]


class IndexManager(SegmentStorageManager):
    """Answers with one index for all segments."""

    def __init__(self, world: RemoteWorld, index: bytes) -> None:
        super().__init__(storage=world.objects, keys=ObjectKeys(), layouts=[RawLayout()])
        self._index = index

    def fetch_index(self, metadata: RemoteLogSegmentMetadata, index_type: IndexType) -> bytes:
        return self._index


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (struct.pack(">ii", 10, 1 << 30), "an index entry is out of order"),
        (struct.pack(">ii", 10, -5), "an index entry is out of order"),
        (struct.pack(">ii", 10, 0)[:-1], "index ends within an entry"),
    ],
)
def test_scan_when_the_index_is_damaged_then_corrupt_and_nothing_is_fetched(
    world: RemoteWorld, index: bytes, message: str
) -> None:
    ((segment, _),) = stored(world, 0)
    damaged = RemoteScanner(IndexManager(world, index), world.executor, ScanSettings())

    with pytest.raises(CorruptError, match=message):
        list(damaged.scan([(segment, 95)], 95))

    assert world.executor.submitted_count == 0
