"""Which stored batches may be served: to the offset, byte and epoch."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c

from rsm.segment.batches.batch import HEADER_BYTES, MAX_BATCH_BYTES
from rsm.segment.batches.batch_checks import (
    RunEnd,
    append_checked,
    checked_header,
    require_index_agrees,
    require_outside,
)
from rsm.segment.batches.batch_run import BatchRun
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OffsetIndexEntry
from rsm.segment.metadata import RemoteLogSegmentMetadata
from tests.metadata_builder import segment_metadata
from tests.segment_builder import build_batch, build_legacy_message, pack_batch, record, records

SEGMENT = segment_metadata(1, 0, 40, epochs=((0, 0), (3, 20)))
"""Four batches of ten offsets; epoch 3 begins with the third."""
BATCHES = [
    build_batch([record(base + n) for n in range(10)], leader_epoch=0 if base < 20 else 3)
    for base in range(0, 40, 10)
]
BATCH_BYTES = len(BATCHES[0])


def appended(
    *batches: bytes,
    metadata: RemoteLogSegmentMetadata = SEGMENT,
    until: RunEnd | None = None,
    position: int = 0,
) -> list[tuple[int, int]]:
    """The offsets of the batches that are right, up to the first that is not."""
    run = BatchRun(position)
    append_checked(run, memoryview(b"".join(batches)), position, metadata, until or RunEnd())
    assert [run[n].position for n in range(len(run))] == [
        position + BATCH_BYTES * n for n in range(len(run))
    ]
    return [(run[n].base_offset, run[n].next_offset) for n in range(len(run))]


def with_delta(batch: bytes, delta: int) -> bytes:
    data = bytearray(batch)
    struct.pack_into(">i", data, 23, delta)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


@pytest.mark.parametrize("position", [0, 1_000])
def test_append_when_all_are_right_then_the_run_has_each_where_it_lies(position: int) -> None:
    assert len(set(map(len, BATCHES))) == 1
    found = appended(*BATCHES, position=position)
    assert found == [(0, 10), (10, 20), (20, 30), (30, 40)]


def test_append_when_a_run_is_started_then_goes_on_behind_it() -> None:
    log = b"".join(BATCHES)
    run = BatchRun(0)
    append_checked(run, memoryview(log)[: 2 * BATCH_BYTES], 0, SEGMENT, RunEnd())
    assert (len(run), run.end_position) == (2, 2 * BATCH_BYTES)

    append_checked(run, memoryview(log)[BATCH_BYTES:], BATCH_BYTES, SEGMENT, RunEnd())

    assert [run[n].base_offset for n in range(len(run))] == [0, 10, 20, 30]
    assert run.end_position == len(log)


def test_append_when_a_batch_comes_again_then_is_not_added() -> None:
    """Its offsets are below those that the run has."""
    run = BatchRun(0)
    append_checked(run, memoryview(BATCHES[1] + BATCHES[0]), 0, SEGMENT, RunEnd())
    assert [run[n].base_offset for n in range(len(run))] == [10]

    append_checked(run, memoryview(BATCHES[1]), BATCH_BYTES, SEGMENT, RunEnd())

    assert len(run) == 1


@pytest.mark.parametrize(
    ("until", "count"),
    [
        (RunEnd(position=2 * BATCH_BYTES), 2),
        (RunEnd(position=2 * BATCH_BYTES + 1), 3),
        (RunEnd(position=0), 0),
        (RunEnd(offset=19), 2),
        (RunEnd(offset=20), 3),
        (RunEnd(position=3 * BATCH_BYTES, offset=5), 1),
    ],
)
def test_append_when_an_end_is_given_then_stops_at_it(until: RunEnd, count: int) -> None:
    assert len(appended(*BATCHES, until=until)) == count


@pytest.mark.parametrize(
    ("position", "offset", "reached"), [(9, 20, False), (10, 20, True), (9, 21, True)]
)
def test_end_when_either_bound_is_come_to_then_reached(
    position: int, offset: int, *, reached: bool
) -> None:
    assert RunEnd(position=10, offset=20).reached(position, offset) == reached


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(BATCHES[1][:-1], id="cut short"),
        pytest.param(BATCHES[1][: HEADER_BYTES - 1], id="its header is cut short"),
        pytest.param(build_legacy_message(10, b"value", magic=1), id="of an older version"),
        pytest.param(BATCHES[1][:-1] + b"\xff", id="its bytes are changed"),
        pytest.param(build_batch(records(10, base_offset=9)), id="its offsets go back"),
        pytest.param(build_batch(records(31, base_offset=10)), id="it ends above the segment"),
        pytest.param(with_delta(BATCHES[1], -1), id="it ends before it begins"),
        pytest.param(build_batch(records(10, base_offset=10), leader_epoch=3), id="a later epoch"),
        pytest.param(build_batch(records(10, base_offset=20)), id="an earlier epoch"),
    ],
)
def test_append_when_a_batch_is_not_right_then_stops_before_it(second: bytes) -> None:
    assert appended(BATCHES[0], second) == [(0, 10)]


def test_append_when_a_length_is_less_than_a_header_then_stops_before_it() -> None:
    bad = bytearray(BATCHES[1])
    struct.pack_into(">i", bad, 8, HEADER_BYTES - 12 - 1)
    assert appended(BATCHES[0], bytes(bad)) == [(0, 10)]


def test_append_when_batches_are_as_small_as_can_be_then_added() -> None:
    """Compaction leaves empty ones; a batch of one record ends where it begins."""
    run = BatchRun(0)
    empty = pack_batch(b"", base_offset=0, last_offset=19)
    one = pack_batch(b"", base_offset=39, last_offset=39, leader_epoch=3)
    assert len(empty) == HEADER_BYTES

    append_checked(run, memoryview(empty + one), 0, SEGMENT, RunEnd())

    assert [(run[n].base_offset, run[n].next_offset) for n in range(len(run))] == [
        (0, 20),
        (39, 40),
    ]


@pytest.mark.parametrize(("start", "count"), [(10, 1), (11, 0)])
def test_append_when_a_batch_begins_below_the_segment_then_stops_before_it(
    start: int, count: int
) -> None:
    segment = segment_metadata(1, start, 40, epochs=((0, start), (3, 20)))
    assert len(appended(BATCHES[1], metadata=segment)) == count


def test_append_when_an_epoch_is_not_known_then_left_to_be_checked_alone() -> None:
    segment = segment_metadata(1, 10, 40, epochs=((0, 15), (3, 20)))
    assert appended(BATCHES[1], metadata=segment) == []


def test_append_when_a_batch_ends_above_the_segment_by_one_then_stops_before_it() -> None:
    shorter = segment_metadata(1, 0, 39, epochs=((0, 0), (3, 20)))
    assert len(appended(*BATCHES, metadata=shorter)) == 3


@pytest.mark.parametrize("size", [1, 16, 17, 20, 21, 22, 60, 61, 62, BATCH_BYTES])
@pytest.mark.parametrize("batch", [BATCHES[0], build_legacy_message(0, b"v" * 200, magic=1)])
def test_header_when_its_batch_lies_in_pieces_of_any_size_then_checked(
    batch: bytes, size: int
) -> None:
    pieces = [memoryview(batch)[start : start + size] for start in range(0, len(batch), size)]

    header = checked_header(pieces, SEGMENT, position=500, at_least_offset=0)

    assert (header.base_offset, header.length_bytes) == (0, len(batch))
    changed = batch[:-1] + bytes([batch[-1] ^ 1])
    pieces = [memoryview(changed)[start : start + size] for start in range(0, len(batch), size)]
    with pytest.raises(CorruptError, match="CRC") as caught:
        checked_header(pieces, SEGMENT, position=500, at_least_offset=0)
    assert caught.value.context["position"] == 500


@pytest.mark.parametrize(("at_least", "accepted"), [(10, True), (11, False)])
def test_header_when_a_batch_begins_below_what_it_may_then_corrupt(
    at_least: int, *, accepted: bool
) -> None:
    batch = [memoryview(BATCHES[1])]
    if accepted:
        header = checked_header(batch, SEGMENT, position=0, at_least_offset=at_least)
        assert header.base_offset == 10
        return

    with pytest.raises(CorruptError, match="other offsets") as caught:
        checked_header(batch, SEGMENT, position=0, at_least_offset=at_least)

    assert (caught.value.context["expected"], caught.value.context["found"]) == ("11..39", 10)


@pytest.mark.parametrize(("end", "accepted"), [(40, True), (39, False)])
def test_header_when_a_batch_ends_above_its_segment_then_corrupt(
    end: int, *, accepted: bool
) -> None:
    segment = segment_metadata(1, 0, end, epochs=((0, 0), (3, 20)))
    batch = [memoryview(BATCHES[3])]
    if accepted:
        header = checked_header(batch, segment, position=0, at_least_offset=0)
        assert header.next_offset == 40
        return

    with pytest.raises(CorruptError, match="other offsets"):
        checked_header(batch, segment, position=0, at_least_offset=0)


@pytest.mark.parametrize(
    ("epochs", "accepted"),
    [(((0, 0), (3, 20)), True), (((0, 0), (2, 10)), False), (((2, 15),), True)],
)
def test_header_when_its_epoch_is_known_then_must_be_the_segments(
    epochs: tuple[tuple[int, int], ...], *, accepted: bool
) -> None:
    """What lies below the first known epoch was below the log start as it was copied."""
    segment = segment_metadata(1, 0, 40, epochs=epochs)
    batch = [memoryview(BATCHES[1])]
    if accepted:
        header = checked_header(batch, segment, position=0, at_least_offset=0)
        assert header.base_offset == 10
        return

    with pytest.raises(CorruptError, match="epoch"):
        checked_header(batch, segment, position=0, at_least_offset=0)


def test_header_when_it_is_none_then_corrupt_at_its_position() -> None:
    with pytest.raises(CorruptError) as caught:
        checked_header([memoryview(bytes(100))[:50]], SEGMENT, position=500, at_least_offset=0)

    assert caught.value.context["position"] == 500


@pytest.mark.parametrize(
    ("position", "base_offset", "agrees"),
    [(0, 99, True), (1, 50, True), (1, 49, True), (1, 51, False)],
)
def test_index_when_it_leads_behind_what_it_was_asked_for_then_corrupt(
    position: int, base_offset: int, *, agrees: bool
) -> None:
    entry = OffsetIndexEntry(offset=50, position=position)
    if agrees:
        require_index_agrees(base_offset, entry)
        return

    with pytest.raises(CorruptError, match="index does not agree"):
        require_index_agrees(base_offset, entry)


def test_cut_when_a_batch_begins_below_it_then_corrupt() -> None:
    require_outside(20, 20)

    with pytest.raises(CorruptError, match="crosses"):
        require_outside(19, 20)


def test_batch_when_of_any_size_then_at_most_what_a_broker_takes_in_a_request() -> None:
    """socket.request.max.bytes."""
    assert MAX_BATCH_BYTES == 100 << 20
