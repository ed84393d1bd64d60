"""Stored segments read back, one after the other, as the metadata knows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm.remote_read.timestamps import RemoteTimestamps
from rsm.cache.disk_chunks import DiskChunks, DiskChunksSettings, DiskResult
from rsm.segment.batches.segment_cursor import StoredBatches
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, NotFoundError
from tests.fakes.clock import FakeClock
from tests.remote_world import (
    TIP,
    WHOLE,
    RemoteWorld,
    bytes_of,
    positions_of,
    segment_of,
)
from tests.segment_builder import build_batches, build_segment

BASE_MS = 1_700_000_000_000  # the time of offset 0; each offset is a millisecond later


@pytest.mark.parametrize("ahead_count", [0, 1, 3])
def test_scan_when_over_segments_then_every_byte_in_order(
    world: RemoteWorld, ahead_count: int
) -> None:
    """Scenario 41, for the remote tier: every batch once, in order, as it was stored."""
    segments = [segment_of(base) for base in (0, 100, 200)]
    world.claim()
    for segment in segments:
        world.store(segment)
    scan = world.reader(ahead_count=ahead_count).scan(TIP, 0)

    content = bytes_of(list(scan))

    assert content == b"".join(segment.log for segment in segments)
    assert scan.next_offset == 300


def test_scan_when_segments_have_different_layouts_then_every_byte_in_order(
    world: RemoteWorld,
) -> None:
    """R23: a topic that was streamed for a while."""
    segments = [segment_of(base) for base in (0, 100, 200, 300, 400)]
    world.claim()
    names = []
    for segment, layout in zip(segments, ("raw", "block_v2", "block_v1", "chunked"), strict=False):
        world.write_as(layout)
        names.append(world.store(segment).layout)
    world.write_as("block_v2")
    names.append(world.store(segments[4], ledgers=(400, 450)).layout)

    content = bytes_of(list(world.reader().scan(TIP, 0)))

    assert content == b"".join(segment.log for segment in segments)
    assert names == ["raw", "block_v2", "block_v1", "chunked", "block_v2"]


@pytest.mark.parametrize(
    ("layout", "ledgers"),
    [
        pytest.param("raw", (), id="raw"),
        pytest.param("block_v1", (), id="block_v1"),
        pytest.param("block_v2", (), id="block_v2"),
        pytest.param("block_v2", (100, 130, 150), id="streamed"),
        pytest.param("chunked", (), id="chunked"),
        pytest.param("chunked", (100, 130, 150), id="streamed in chunks"),
    ],
)
def test_scan_when_cached_data_of_any_layout_is_damaged_then_reads_the_store_again(
    tmp_path: Path, layout: str, ledgers: tuple[int, ...]
) -> None:
    """Scenario 61, in a topic of mixed layouts: chunks and indexes, copied and streamed."""
    results: list[DiskResult] = []
    settings = DiskChunksSettings(directory=tmp_path, budget_bytes=1 << 20)
    world = RemoteWorld(disk=DiskChunks(settings, FakeClock(), results.append))
    world.claim()
    segments = [segment_of(base) for base in (0, 100)]
    world.store(segments[0])
    world.write_as(layout)
    world.store(segments[1], ledgers=ledgers)
    whole = _read_whole(world)
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    files_count = len(list(tmp_path.iterdir()))
    results.clear()
    world.write_as(layout)  # as after a restart: nothing of it is in memory

    found = [_read_whole(world), _read_whole(world)]

    assert whole == (b"".join(each.log for each in segments), 150)
    assert found == [whole, whole]
    assert results.count(DiskResult.CORRUPT) == files_count > 2
    assert results[-1] is DiskResult.HIT


def _read_whole(world: RemoteWorld) -> tuple[bytes, int | None]:
    """Return all batches, and the offset of a timestamp by the second segment's time index."""
    reader = world.reader(ahead_count=0)
    since = RemoteTimestamps(world.metadata, reader).offset_since(TIP, BASE_MS + 150)
    return bytes_of(list(reader.scan(TIP, 0))), since


@pytest.mark.parametrize("deleted_count", range(4))
@pytest.mark.parametrize("from_batch", [0, 1, 10, 29])
def test_scan_when_a_merged_segment_overlaps_its_parts_then_each_batch_once(
    world: RemoteWorld, from_batch: int, deleted_count: int
) -> None:
    """From the merge's end until all of its parts are deleted."""
    batches = build_batches(30, value_bytes=1_000)
    world.claim()
    parts = [world.store(build_segment(batches[at : at + 10])) for at in (0, 10, 20)]
    world.store(build_segment(batches))
    for part in parts[:deleted_count]:
        world.begin_deletion(part)

    scan = world.reader().scan(TIP, from_batch * 10)

    assert bytes_of(list(scan)) == b"".join(batches[from_batch:])
    assert scan.next_offset == 300


def test_scan_when_end_is_reached_then_fetches_no_more(world: RemoteWorld) -> None:
    world.claim()
    for base in (0, 100, 200):
        world.store(segment_of(base))

    runs = list(world.reader(ahead_count=0).scan(TIP, 0, 100))

    assert runs[-1].offsets.end_offset == 100
    assert world.executor.submitted_count == 2


def test_scan_when_compaction_left_a_gap_at_segments_end_then_next_segments_batch(
    world: RemoteWorld,
) -> None:
    """Scenario 56: a position in a compaction gap gets the next batch, also in the next segment."""
    world.claim()
    world.store(segment_of(0), end_offset=150)
    world.store(segment_of(150))
    scan = world.reader().scan(TIP, 120)

    runs = list(scan)

    assert runs[0].offsets.start_offset == 150
    assert scan.next_offset == 250


def test_scan_when_gap_is_at_the_end_of_all_then_continues_after_it(world: RemoteWorld) -> None:
    """Scenario 56: the local tier is read from the gap's end, not always from its start."""
    world.claim()
    world.store(segment_of(0), end_offset=150)
    scan = world.reader().scan(TIP, 0)

    list(scan)

    assert scan.next_offset == 150


def test_scan_when_hole_then_ends_before_it(world: RemoteWorld) -> None:
    """Scenario 63: missing offsets are not skipped."""
    world.claim()
    world.store(segment_of(0))
    world.store(segment_of(200))
    scan = world.reader().scan(TIP, 0)

    list(scan)

    assert scan.next_offset == 100


def test_scan_when_epochs_change_between_segments_then_follows_lineage(world: RemoteWorld) -> None:
    """Scenario 8: the old leader's segment is read up to the cut, then the new leader's."""
    lineage = Lineage.of((0, 0), (2, 60))
    old, new = segment_of(0), segment_of(60, leader_epoch=2)
    world.store(old)
    world.store(new, lineage=lineage)
    world.claim(lineage)
    scan = world.reader().scan(TIP, 0)

    runs = list(scan)

    assert bytes_of(runs) == old.log[: positions_of(old)[6]] + new.log
    assert scan.next_offset == 160


def test_scan_when_object_is_gone_then_not_found_names_the_segment(world: RemoteWorld) -> None:
    """Scenario 63: an error for that range; the segments before it are read."""
    world.claim()
    world.store(segment_of(0))
    gone = world.store(segment_of(100))
    world.objects.delete(gone.objects[0].key)
    runs: list[StoredBatches] = []

    with pytest.raises(NotFoundError) as caught:
        runs.extend(world.reader(ahead_count=0).scan(TIP, 0))

    assert caught.value.context["segment_id"] == gone.segment_id
    assert str(caught.value.context["offsets"]) == "[100, 200)"


def test_scan_when_object_is_shorter_than_recorded_then_corrupt(world: RemoteWorld) -> None:
    world.claim()
    stored = world.store(segment_of(0))
    key = stored.objects[0].key
    world.rewrite(key, world.objects.read_range(key, WHOLE)[:-5])

    with pytest.raises(CorruptError, match="shorter"):
        list(world.reader().scan(TIP, 0))


def test_scan_when_a_bit_was_flipped_in_the_store_then_corrupt(world: RemoteWorld) -> None:
    """Scenario 62: never wrong bytes."""
    world.claim()
    stored = world.store(segment_of(0))
    key = stored.objects[0].key
    content = bytearray(world.objects.read_range(key, WHOLE))
    content[len(content) // 2] ^= 4
    world.rewrite(key, bytes(content))

    with pytest.raises(CorruptError) as caught:
        list(world.reader().scan(TIP, 0))

    assert key in str(caught.value)
