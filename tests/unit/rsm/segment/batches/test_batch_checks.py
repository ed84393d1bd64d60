"""Which stored batches may be served: exact to the offset, byte and epoch."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from crc32c import crc32c

from rsm.segment.batches.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAX_BATCH_BYTES
from rsm.segment.batches.batch_checks import (
    RunEnd,
    check_batch,
    check_run,
    require_index_agrees,
    require_outside,
)
from rsm.segment.batches.batch_run import BatchRun
from rsm.segment.batches.expectations import SegmentExpectation
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


def check(
    *batches: bytes,
    run: BatchRun,
    metadata: RemoteLogSegmentMetadata = SEGMENT,
    until: RunEnd | None = None,
) -> None:
    """Check batches whose bytes begin where the run ends."""
    buffer = memoryview(b"".join(batches))
    check_run(run, buffer, run.end_position, SegmentExpectation(metadata), until or RunEnd())


def checked(
    *batches: bytes,
    metadata: RemoteLogSegmentMetadata = SEGMENT,
    until: RunEnd | None = None,
) -> list[tuple[int, int]]:
    """Return the offsets of the batches up to `until`."""
    run = BatchRun(0, at_least_offset=metadata.offsets.start_offset)
    check(*batches, run=run, metadata=metadata, until=until)
    return offsets_of(run)


def offsets_of(run: BatchRun) -> list[tuple[int, int]]:
    return [(run[n].base_offset, run[n].next_offset) for n in range(len(run))]


def check_one(
    batch: Sequence[memoryview],
    metadata: RemoteLogSegmentMetadata = SEGMENT,
    *,
    position: int = 0,
    at_least_offset: int = 0,
) -> BatchRun:
    run = BatchRun(position, at_least_offset=at_least_offset)
    check_batch(run, batch, SegmentExpectation(metadata))
    return run


def with_field(batch: bytes, position: int, value: int) -> bytes:
    """Return the batch with another number at the position, and a right CRC."""
    data = bytearray(batch)
    struct.pack_into(">i", data, position, value)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


def with_length(batch: bytes, size: int) -> bytes:
    return batch[:8] + struct.pack(">i", size - LOG_OVERHEAD_BYTES) + batch[12:]


@pytest.mark.parametrize("position", [0, 1_000])
def test_run_when_all_are_right_then_has_each_where_it_lies(position: int) -> None:
    assert len(set(map(len, BATCHES))) == 1
    run = BatchRun(position)

    check(*BATCHES, run=run)

    assert offsets_of(run) == [(0, 10), (10, 20), (20, 30), (30, 40)]
    assert [run[n].position for n in range(4)] == [position + BATCH_BYTES * n for n in range(4)]
    assert run.end_position == position + 4 * BATCH_BYTES


def test_run_when_it_is_started_then_continues_after_it() -> None:
    log = memoryview(b"".join(BATCHES))
    expectation = SegmentExpectation(SEGMENT)
    run = BatchRun(0)
    check_run(run, log[: 2 * BATCH_BYTES], 0, expectation)
    assert (len(run), run.end_position) == (2, 2 * BATCH_BYTES)

    check_run(run, log[BATCH_BYTES:], BATCH_BYTES, expectation)

    assert [run[n].base_offset for n in range(len(run))] == [0, 10, 20, 30]
    assert run.end_position == len(log)


def test_run_when_a_batch_comes_again_then_corrupt() -> None:
    """Its offsets are below the offset that the run expects next."""
    run = BatchRun(0)
    with pytest.raises(CorruptError, match="offsets are outside the expected range"):
        check(BATCHES[1], BATCHES[0], run=run)
    assert [run[n].base_offset for n in range(len(run))] == [10]

    with pytest.raises(CorruptError, match="offsets are outside the expected range"):
        check(BATCHES[1], run=run)

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
def test_run_when_an_end_is_given_then_stops_at_it(until: RunEnd, count: int) -> None:
    assert len(checked(*BATCHES, until=until)) == count


@pytest.mark.parametrize(
    ("position", "offset", "is_reached"), [(9, 20, False), (10, 20, True), (9, 21, True)]
)
def test_end_when_either_bound_is_come_to_then_reached(
    position: int, offset: int, *, is_reached: bool
) -> None:
    assert RunEnd(position=10, offset=20).is_reached(position, offset) == is_reached


@pytest.mark.parametrize("present_bytes", [0, 1, 16, 17, HEADER_BYTES - 1, BATCH_BYTES - 1])
def test_run_when_a_batch_is_cut_short_then_stops_before_it(present_bytes: int) -> None:
    assert checked(BATCHES[0], BATCHES[1][:present_bytes]) == [(0, 10)]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        pytest.param(BATCHES[1][:-1] + b"\xff", "CRC", id="its bytes are changed"),
        pytest.param(build_batch(records(10, base_offset=9)), "offsets", id="its offsets go back"),
        pytest.param(
            build_batch(records(31, base_offset=10)), "offsets", id="it ends above the segment"
        ),
        pytest.param(with_field(BATCHES[1], 23, -1), "offsets", id="it ends before it begins"),
        pytest.param(with_field(BATCHES[1], 57, -1), "record count", id="it has less than none"),
        pytest.param(
            build_batch(records(10, base_offset=10), leader_epoch=3), "epoch", id="a later epoch"
        ),
        pytest.param(build_batch(records(10, base_offset=20)), "epoch", id="an earlier epoch"),
        pytest.param(
            with_length(BATCHES[1], HEADER_BYTES - 1), "size", id="it is shorter than a header"
        ),
        pytest.param(
            with_length(BATCHES[1], MAX_BATCH_BYTES + 1), "size", id="it is longer than may be"
        ),
        pytest.param(BATCHES[1][:16] + b"\x03" + BATCHES[1][17:], "magic", id="a later version"),
        pytest.param(
            build_legacy_message(9, b"value", magic=1),
            "offsets",
            id="an older one of lower offsets",
        ),
        pytest.param(
            build_legacy_message(10, b"value", magic=1)[:-1] + b"\xff",
            "CRC",
            id="an older one with changed bytes",
        ),
    ],
)
def test_run_when_a_batch_is_not_right_then_corrupt_after_those_before_it(
    second: bytes, message: str
) -> None:
    run = BatchRun(1_000)

    with pytest.raises(CorruptError, match=message) as caught:
        check(BATCHES[0], second, run=run)

    assert offsets_of(run) == [(0, 10)]
    assert caught.value.context["position"] == 1_000 + BATCH_BYTES


@pytest.mark.parametrize("magic", [0, 1])
def test_run_when_a_message_is_of_an_older_version_then_added_and_continues(magic: int) -> None:
    """It has no leader epoch."""
    message = build_legacy_message(12, b"value", magic=magic)

    found = checked(BATCHES[0], message, BATCHES[2], until=RunEnd(offset=20))

    assert found == [(0, 10), (12, 13), (20, 30)]


def test_run_when_batches_are_as_small_as_can_be_then_added() -> None:
    """Compaction leaves empty ones; a batch of one record ends where it begins."""
    empty = pack_batch(b"", base_offset=0, last_offset=19)
    one = pack_batch(b"", base_offset=39, last_offset=39, leader_epoch=3)
    assert len(empty) == HEADER_BYTES

    assert checked(empty, one) == [(0, 20), (39, 40)]


@pytest.mark.parametrize(("start", "accepted"), [(10, True), (11, False)])
def test_run_when_a_batch_begins_below_the_segment_then_corrupt(
    start: int, *, accepted: bool
) -> None:
    segment = segment_metadata(1, start, 40, epochs=((0, start), (3, 20)))
    if accepted:
        assert checked(BATCHES[1], metadata=segment) == [(10, 20)]
        return

    with pytest.raises(CorruptError, match="offsets are outside the expected range"):
        checked(BATCHES[1], metadata=segment)


def test_run_when_an_epoch_is_not_known_then_accepted_up_to_the_first_that_is() -> None:
    """Batches below the first known epoch were below the log start at copy time."""
    segment = segment_metadata(1, 0, 40, epochs=((3, 20),))
    other = build_batch(records(10, base_offset=10), leader_epoch=7)

    assert len(checked(BATCHES[0], other, BATCHES[2], metadata=segment)) == 3
    with pytest.raises(CorruptError, match="epoch"):
        checked(other, build_batch(records(10, base_offset=20), leader_epoch=7), metadata=segment)


def test_run_when_a_batch_reaches_into_the_next_epoch_then_its_first_offset_decides() -> None:
    segment = segment_metadata(1, 0, 40, epochs=((0, 0), (3, 25)))
    across = build_batch(records(10, base_offset=20), leader_epoch=0)

    assert len(checked(BATCHES[0], BATCHES[1], across, BATCHES[3], metadata=segment)) == 4


def test_run_when_a_batch_ends_above_the_segment_by_one_then_corrupt() -> None:
    shorter = segment_metadata(1, 0, 39, epochs=((0, 0), (3, 20)))
    run = BatchRun(0)

    with pytest.raises(CorruptError, match="offsets are outside the expected range") as caught:
        check(*BATCHES, run=run, metadata=shorter)

    assert len(run) == 3
    assert caught.value.context["last_offset"] == 39


@pytest.mark.parametrize("size", [1, 16, 17, 20, 21, 22, 60, 61, 62, BATCH_BYTES])
@pytest.mark.parametrize("batch", [BATCHES[0], build_legacy_message(0, b"v" * 200, magic=1)])
def test_batch_when_its_batch_lies_in_pieces_of_any_size_then_checked(
    batch: bytes, size: int
) -> None:
    pieces = [memoryview(batch)[start : start + size] for start in range(0, len(batch), size)]

    run = check_one(pieces, position=500)

    assert (run[0].base_offset, run.end_position) == (0, 500 + len(batch))
    changed = batch[:-1] + bytes([batch[-1] ^ 1])
    pieces = [memoryview(changed)[start : start + size] for start in range(0, len(batch), size)]
    with pytest.raises(CorruptError, match="CRC") as caught:
        check_one(pieces, position=500)
    assert caught.value.context["position"] == 500


@pytest.mark.parametrize(("at_least", "accepted"), [(10, True), (11, False)])
def test_batch_when_a_batch_begins_below_what_it_may_then_corrupt(
    at_least: int, *, accepted: bool
) -> None:
    batch = [memoryview(BATCHES[1])]
    if accepted:
        run = check_one(batch, at_least_offset=at_least)
        assert run[0].base_offset == 10
        return

    with pytest.raises(CorruptError, match="offsets are outside the expected range") as caught:
        check_one(batch, at_least_offset=at_least)

    assert (caught.value.context["expected"], caught.value.context["found"]) == ("11..39", 10)


@pytest.mark.parametrize(("end", "accepted"), [(40, True), (39, False)])
def test_batch_when_a_batch_ends_above_its_segment_then_corrupt(
    end: int, *, accepted: bool
) -> None:
    segment = segment_metadata(1, 0, end, epochs=((0, 0), (3, 20)))
    batch = [memoryview(BATCHES[3])]
    if accepted:
        assert check_one(batch, segment).next_offset == 40
        return

    with pytest.raises(CorruptError, match="offsets are outside the expected range"):
        check_one(batch, segment)


@pytest.mark.parametrize(
    ("epochs", "accepted"),
    [(((0, 0), (3, 20)), True), (((0, 0), (2, 10)), False), (((2, 15),), True)],
)
def test_batch_when_its_epoch_is_known_then_must_be_the_segments(
    epochs: tuple[tuple[int, int], ...], *, accepted: bool
) -> None:
    """Batches below the first known epoch were below the log start at copy time."""
    segment = segment_metadata(1, 0, 40, epochs=epochs)
    batch = [memoryview(BATCHES[1])]
    if accepted:
        assert check_one(batch, segment)[0].base_offset == 10
        return

    with pytest.raises(CorruptError, match="epoch"):
        check_one(batch, segment)


@pytest.mark.parametrize(
    ("position", "base_offset", "agrees"),
    [(0, 99, True), (1, 50, True), (1, 49, True), (1, 51, False)],
)
def test_index_when_it_points_past_the_offset_then_corrupt(
    position: int, base_offset: int, *, agrees: bool
) -> None:
    entry = OffsetIndexEntry(offset=50, position=position)
    if agrees:
        require_index_agrees(base_offset, entry)
        return

    with pytest.raises(CorruptError, match="index does not match the log"):
        require_index_agrees(base_offset, entry)


def test_cut_when_a_batch_begins_below_it_then_corrupt() -> None:
    require_outside(20, 20)

    with pytest.raises(CorruptError, match="crosses"):
        require_outside(19, 20)


def test_batch_when_of_any_size_then_at_most_what_a_broker_takes_in_a_request() -> None:
    """socket.request.max.bytes."""
    assert MAX_BATCH_BYTES == 100 << 20
