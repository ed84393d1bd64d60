"""The first stored record since a time."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import pytest

from rlm.remote_read.timestamps import FoundRecord, RemoteTimestamps
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import ControlType
from rsm.segment.epochs import Lineage
from tests.remote_world import TIP, RemoteWorld, segment_of
from tests.segment_builder import (
    build_batch,
    build_batches,
    build_control_batch,
    build_segment,
    record,
)

BASE_MS = 1_700_000_000_000  # the time of offset 0; each offset is a millisecond later


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a segment is stored: its layout, and the ledgers of a streamed one."""

    layout: str
    ledgers: tuple[int, ...] = ()


FORMS = (
    pytest.param(Form(layout="raw"), id="raw"),
    pytest.param(Form(layout="block_v1"), id="block_v1"),
    pytest.param(Form(layout="block_v2"), id="block_v2"),
    pytest.param(Form(layout="chunked"), id="chunked"),
    pytest.param(Form(layout="block_v2", ledgers=(100, 150)), id="streamed"),
)


def offset_since(world: RemoteWorld, timestamp_ms: int) -> int | None:
    timestamps = RemoteTimestamps(world.metadata, world.reader())
    return timestamps.offset_since(TIP, timestamp_ms)


@pytest.mark.parametrize(
    ("since_ms", "offset"),
    [(0, 0), (BASE_MS, 0), (BASE_MS + 37, 37), (BASE_MS + 100, 100), (BASE_MS + 199, 199)],
)
def test_offset_since_when_stored_then_first_not_older(
    world: RemoteWorld, since_ms: int, offset: int
) -> None:
    """Scenario 42, for the remote tier: a time before the first record, and exact times."""
    world.claim()
    for base in (0, 100):
        world.store(segment_of(base))

    assert offset_since(world, since_ms) == offset


def test_offset_since_when_all_are_older_then_none_and_nothing_is_fetched(
    world: RemoteWorld,
) -> None:
    """Scenario 44: if only the local log has the answer, the store is not read."""
    world.claim()
    world.store(segment_of(0))

    assert offset_since(world, BASE_MS + 100) is None
    assert world.executor.submitted_count == 0


def test_offset_since_when_times_go_back_then_the_first_in_order_of_offset(
    world: RemoteWorld,
) -> None:
    world.claim()
    times = [50, 10, 90, 20, 60]
    batches = [
        build_batch([record(offset, timestamp_ms=BASE_MS + ms)], codec=CompressionType.GZIP)
        for offset, ms in enumerate(times)
    ]
    world.store(build_segment(batches, index_interval_bytes=1))

    found = [offset_since(world, BASE_MS + ms) for ms in (10, 50, 51, 60, 90)]

    assert found == [0, 0, 2, 2, 2]


def test_offset_since_when_segment_is_out_of_lineage_then_skipped(world: RemoteWorld) -> None:
    """Scenario 45: a segment out of lineage does not answer; the next valid one does."""
    other = build_segment(build_batches(10, base_offset=0, leader_epoch=1))
    world.store(other, lineage=Lineage.of((1, 0)))
    world.store(segment_of(100, leader_epoch=2), lineage=Lineage.of((2, 100)))
    world.claim(Lineage.of((2, 100)))

    assert offset_since(world, BASE_MS) == 100


@pytest.mark.parametrize("valid", FORMS)
@pytest.mark.parametrize("other", FORMS)
def test_offset_since_when_layouts_are_mixed_then_the_next_segment_in_lineage_answers(
    world: RemoteWorld, other: Form, valid: Form
) -> None:
    """Scenario 45: copied and streamed; the streamed one's second ledger has the record."""
    lineage = Lineage.of((1, 0), (2, 100))
    world.store(segment_of(0, leader_epoch=1), lineage=lineage)
    world.write_as(other.layout)
    cut_off = build_segment(build_batches(10, base_offset=100, leader_epoch=1))
    world.store(cut_off, lineage=Lineage.of((1, 0)), ledgers=other.ledgers)
    world.write_as(valid.layout)
    world.store(segment_of(100, leader_epoch=2), lineage=lineage, ledgers=valid.ledgers)
    world.claim(lineage)

    found = [offset_since(world, BASE_MS + offset) for offset in (99, 100, 165)]

    assert found == [99, 100, 165]


def test_offset_since_when_below_log_start_then_the_first_readable(world: RemoteWorld) -> None:
    world.claim()
    world.store(segment_of(0))
    world.advance_log_start(55)

    assert offset_since(world, BASE_MS + 20) == 55


def test_offset_since_when_a_marker_is_the_first_then_its_offset(world: RemoteWorld) -> None:
    """The broker's own search counts markers, so both tiers give the same answer."""
    world.claim()
    marker = build_control_batch(1, ControlType.COMMIT, producer_id=7, timestamp_ms=BASE_MS + 500)
    world.store(build_segment([build_batch([record(0, timestamp_ms=BASE_MS)]), marker]))

    assert offset_since(world, BASE_MS + 1) == 1


def test_record_of_max_timestamp_when_a_record_has_many_headers_then_they_take_no_memory(
    world: RemoteWorld,
) -> None:
    """A small compressed batch can contain millions of empty headers."""
    world.claim()
    newest = record(1, timestamp_ms=BASE_MS + 5, headers=[("", None)] * 500_000)
    content = [record(0, timestamp_ms=BASE_MS), newest, record(2, timestamp_ms=BASE_MS + 5)]
    world.store(build_segment([build_batch(content, codec=CompressionType.ZSTD)]))
    timestamps = RemoteTimestamps(world.metadata, world.reader())

    tracemalloc.start()
    try:
        found = timestamps.record_of_max_timestamp(TIP)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found == FoundRecord(offset=1, timestamp_ms=BASE_MS + 5, leader_epoch=0)
    assert peak_bytes < 8 << 20
