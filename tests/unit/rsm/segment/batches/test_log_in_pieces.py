"""A log in pieces of any size gives the same as the whole log, even if it is damaged."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.batch_carry import BatchCarry
from rsm.segment.batches.scanner import SegmentScanner
from rsm.segment.batches.segment_cursor import SegmentCursor, StoredBatches
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OffsetIndexEntry
from rsm.segment.ranges import OffsetRange
from tests.segment_builder import build_batch, records
from tests.unit.rsm.segment.batches.random_logs import RandomLog, random_logs


def scan_outcome(log: RandomLog, pieces: Sequence[bytes]) -> tuple[object, ...]:
    scanner = SegmentScanner(base_offset=log.offsets.start_offset, lineage=log.lineage)
    error = ""
    try:
        for piece in pieces:
            scanner.feed(piece)
        scanner.finish()
    except CorruptError as corrupt:
        error = str(corrupt)
    scan = scanner.scan()
    return scan.offsets, scan.batch_count, scan.valid_bytes, error


def read_outcome(
    stored: StoredRange, from_offset: int, entry: OffsetIndexEntry, pieces: Sequence[bytes]
) -> tuple[object, ...]:
    """Return the served batches from the entry's position on, and the error at their end."""
    cursor = SegmentCursor(stored, from_offset=from_offset, entry=entry)
    runs: list[StoredBatches] = []
    error, cause = "", None
    skipped_bytes = entry.position
    try:
        for piece in pieces:
            runs.extend(cursor.feed(piece[skipped_bytes:]))
            skipped_bytes = max(skipped_bytes - len(piece), 0)
    except CorruptError as corrupt:
        error, cause = str(corrupt), corrupt.__cause__
    bounds = (runs[0].offsets.start_offset, runs[-1].offsets.end_offset) if runs else None
    served = b"".join(bytes(run.data) for run in runs)
    return served, bounds, cursor.next_offset, cursor.position, cursor.is_done, error, str(cause)


@given(log=random_logs())
def test_scan_when_a_log_comes_in_pieces_then_as_of_the_whole(log: RandomLog) -> None:
    """R21: the result of a check does not depend on how the log was read."""
    assert scan_outcome(log, log.pieces) == scan_outcome(log, [log.content])


@given(log=random_logs(), data=st.data())
def test_read_when_a_log_comes_in_pieces_then_as_of_the_whole(
    log: RandomLog, data: st.DataObject
) -> None:
    """Scenario 62 and 65: the same bytes up to the same error, from any batch to any."""
    number = data.draw(st.integers(0, len(log.positions) - 1))
    base_offset = log.base_offsets[number]
    entry = OffsetIndexEntry(offset=base_offset, position=log.positions[number])
    from_offset = base_offset + data.draw(st.integers(0, 3))
    end_offset = data.draw(st.sampled_from([*log.base_offsets[1:], log.offsets.end_offset]))
    offsets = OffsetRange(start_offset=log.offsets.start_offset, end_offset=end_offset)
    stored = StoredRange(metadata=log.stored().metadata, offsets=offsets)

    found = read_outcome(stored, from_offset, entry, log.pieces)

    assert found == read_outcome(stored, from_offset, entry, [log.content])


def test_carry_when_a_length_is_not_known_then_its_prefix_is_needed() -> None:
    batch = memoryview(build_batch(records(2)))
    carry = BatchCarry(1_000)
    assert (carry.take(batch[:16]), carry.end_position) == (16, 1_017)

    taken = carry.take(batch[16:17])

    assert (taken, carry.end_position, carry.is_whole) == (1, 1_000 + len(batch), False)


def test_carry_when_a_piece_has_more_than_the_batch_then_takes_no_more() -> None:
    batch = build_batch(records(2))
    carry = BatchCarry(0)
    carry.take(memoryview(batch)[:100])

    taken = carry.take(memoryview(batch + batch)[100:])

    assert (taken, carry.is_whole) == (len(batch) - 100, True)
    assert b"".join(carry.pieces) == batch
