"""A segment's bytes, in pieces of any size, as runs of whole, checked batches."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.batch import HEADER_BYTES, PREFIX_BYTES
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import ControlType
from rsm.segment.batches.segment_cursor import SegmentCursor, StoredBatches
from rsm.segment.coverage import StoredRange
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.indexes import OffsetIndexEntry
from rsm.segment.ranges import OffsetRange
from tests.remote_world import TIP, WRITER, RemoteWorld, bytes_of, positions_of, segment_of
from tests.segment_builder import (
    BuiltSegment,
    build_batch,
    build_batches,
    build_control_batch,
    build_legacy_message,
    build_segment,
    records,
)
from tests.segment_storing import planned_segment

_SEGMENT_ID = RemoteLogSegmentId(topic_id_partition=TIP, id=UUID(int=101))


def stored(segment: BuiltSegment, *, epochs: Lineage = Lineage.of((0, 0))) -> StoredRange:
    metadata = planned_segment(
        RemoteWorld().storage, segment, _SEGMENT_ID, writer=WRITER, lineage=epochs
    )
    return StoredRange(metadata=metadata, offsets=segment.offsets)


def cursor_of(
    of: StoredRange, *, from_offset: int = 0, entry: OffsetIndexEntry | None = None
) -> SegmentCursor:
    begin = OffsetIndexEntry(offset=of.metadata.offsets.start_offset, position=0)
    return SegmentCursor(of, from_offset=from_offset, entry=entry or begin)


def fed(cursor: SegmentCursor, *pieces: bytes) -> list[StoredBatches]:
    return [run for piece in pieces for run in cursor.feed(piece)]


@given(cuts=st.lists(st.integers(min_value=0, max_value=13_000), max_size=12))
def test_feed_when_cut_anywhere_then_all_bytes_in_order(cuts: list[int]) -> None:
    """Scenario 65: the served bytes are the stored ones, whatever their content."""
    batches = [
        build_legacy_message(0, b"old", magic=0),
        build_legacy_message(1, b"newer", magic=1),
        *build_batches(3, base_offset=2, value_bytes=300, codec=CompressionType.ZSTD),
        build_control_batch(32, ControlType.COMMIT, producer_id=5),
        build_batch([], base_offset=33, last_offset=40),
        *build_batches(2, base_offset=41, value_bytes=300),
    ]
    segment = build_segment(batches)
    bounds = sorted({0, len(segment.log), *(cut for cut in cuts if cut < len(segment.log))})
    pieces = [segment.log[a:b] for a, b in pairwise(bounds)]
    cursor = cursor_of(stored(segment))

    runs = fed(cursor, *pieces)

    assert bytes_of(runs) == segment.log
    assert [runs[0].offsets.start_offset, runs[-1].offsets.end_offset] == [0, 61]
    assert cursor.is_done


@pytest.mark.parametrize("size", [1, 7, PREFIX_BYTES - 1, PREFIX_BYTES, PREFIX_BYTES + 1])
def test_feed_when_pieces_are_smaller_than_a_batch_then_one_run_for_each_batch(size: int) -> None:
    segment = segment_of(0)
    pieces = [segment.log[at : at + size] for at in range(0, len(segment.log), size)]
    cursor = cursor_of(stored(segment))

    runs = fed(cursor, *pieces)

    batches = [segment.log[begin:end] for begin, end in pairwise(positions_of(segment))]
    assert [bytes(run.data) for run in runs] == batches
    assert (cursor.is_done, cursor.position, cursor.next_offset) == (True, len(segment.log), 100)


def test_feed_when_the_last_offsets_were_compacted_away_then_done_with_the_last_byte() -> None:
    """This is so even if reading began after the first batch."""
    segment = segment_of(0)
    metadata = stored(segment).metadata
    offsets = OffsetRange(start_offset=0, end_offset=120)
    compacted = StoredRange(metadata=replace(metadata, offsets=offsets), offsets=offsets)
    position = positions_of(segment)[2]
    cursor = cursor_of(
        compacted, from_offset=20, entry=OffsetIndexEntry(offset=20, position=position)
    )

    first = fed(cursor, segment.log[position:-9])
    assert not cursor.is_done
    last = fed(cursor, segment.log[-9:])

    assert bytes_of([*first, *last]) == segment.log[position:]
    assert cursor.is_done


def test_feed_when_one_piece_then_one_run_without_a_copy() -> None:
    segment = segment_of(0)

    runs = fed(cursor_of(stored(segment)), segment.log)

    assert [run.offsets for run in runs] == [segment.offsets]
    assert runs[0].data.obj is segment.log


def test_feed_when_offset_is_inside_a_batch_then_begins_with_that_batch() -> None:
    """Scenario 57: a fetch in the middle of a batch gets the batch that holds the offset."""
    segment = segment_of(0)

    runs = fed(cursor_of(stored(segment), from_offset=37), segment.log)

    assert runs[0].offsets == OffsetRange(start_offset=30, end_offset=100)


def test_feed_when_readable_part_ends_then_done_and_nothing_more() -> None:
    """Scenario 8: nothing after the lineage's cut is served."""
    segment = segment_of(0)
    half = replace(stored(segment), offsets=OffsetRange(start_offset=0, end_offset=50))
    cursor = cursor_of(half)

    runs = fed(cursor, segment.log, segment.log)

    assert [run.offsets.end_offset for run in runs] == [50]
    assert cursor.is_done


def test_feed_when_batch_crosses_the_lineages_cut_then_corrupt() -> None:
    segment = segment_of(0)
    odd = replace(stored(segment), offsets=OffsetRange(start_offset=0, end_offset=55))

    with pytest.raises(CorruptError, match="a batch crosses its lineage"):
        fed(cursor_of(odd), segment.log)


@pytest.mark.parametrize("bit", range(8 * HEADER_BYTES))
def test_feed_when_any_header_bit_is_flipped_then_corrupt(bit: int) -> None:
    """Scenario 62: an error with its position, and neither wrong nor skipped bytes."""
    segment = segment_of(0, value_bytes=10)
    damaged = bytearray(segment.log)
    damaged[positions_of(segment)[5] + bit // 8] ^= 1 << bit % 8

    with pytest.raises(CorruptError) as caught:
        fed(cursor_of(stored(segment)), bytes(damaged))

    assert int(str(caught.value.context["offset"])) in range(50, 70)
    assert str(caught.value.context["objects"]).count(".log") == 1


def test_feed_when_record_byte_is_flipped_then_error_names_offset_and_position() -> None:
    """Scenario 62."""
    segment = segment_of(0)
    damaged = bytearray(segment.log)
    damaged[-1] ^= 1

    with pytest.raises(CorruptError) as caught:
        fed(cursor_of(stored(segment)), bytes(damaged))

    assert caught.value.context["offset"] == 90
    assert caught.value.context["position"] == positions_of(segment)[9]
    assert "the batch's CRC is wrong" in str(caught.value)


def test_feed_when_a_batch_is_corrupt_then_those_before_it_are_served() -> None:
    """Scenario 62."""
    segment = segment_of(0)
    position = positions_of(segment)[5]
    damaged = segment.log[:position] + b"\xff" + segment.log[position + 1 :]
    runs = cursor_of(stored(segment)).feed(damaged)

    served = next(runs)

    assert served.offsets == OffsetRange(start_offset=0, end_offset=50)
    assert bytes(served.data) == segment.log[:position]
    with pytest.raises(CorruptError):
        next(runs)


def test_feed_when_the_index_is_wrong_then_nothing_is_served() -> None:
    """Scenario 17."""
    segment = segment_of(0)
    third_position = positions_of(segment)[2]
    entry = OffsetIndexEntry(offset=15, position=third_position)
    runs = cursor_of(stored(segment), from_offset=15, entry=entry).feed(
        segment.log[third_position:]
    )

    with pytest.raises(CorruptError):
        next(runs)


@pytest.mark.parametrize("first_batch", [0, 2, 9])
def test_feed_when_segment_ends_within_a_batch_then_corrupt(first_batch: int) -> None:
    """It does not matter where reading began."""
    whole = segment_of(0)
    torn_log = whole.log[:-7]
    metadata = replace(stored(whole).metadata, segment_size_bytes=len(torn_log))
    torn = StoredRange(metadata=metadata, offsets=whole.offsets)
    position = positions_of(whole)[first_batch]
    entry = OffsetIndexEntry(offset=first_batch * 10, position=position)

    with pytest.raises(CorruptError, match="ends within a batch"):
        fed(cursor_of(torn, from_offset=first_batch * 10, entry=entry), torn_log[position:])


def test_feed_when_a_size_that_spans_pieces_is_wrong_then_error_has_its_position() -> None:
    segment = segment_of(0)
    position = positions_of(segment)[5]
    damaged = bytearray(segment.log)
    damaged[position + 8] = 0xFF
    cursor = cursor_of(stored(segment))
    fed(cursor, bytes(damaged[: position + 9]))

    with pytest.raises(CorruptError, match="size is out of bounds") as caught:
        fed(cursor, bytes(damaged[position + 9 :]))

    cause = caught.value.__cause__
    assert isinstance(cause, CorruptError)
    assert (cause.context["position"], caught.value.context["position"]) == (position, position)


def test_feed_when_leader_epoch_is_not_the_segments_then_corrupt() -> None:
    segment = segment_of(0, leader_epoch=3)

    with pytest.raises(CorruptError, match="leader epoch"):
        fed(cursor_of(stored(segment)), segment.log)


def test_feed_when_index_leads_past_what_it_names_then_corrupt() -> None:
    """Scenario 17: an index that is wrong cannot make a reader skip a batch."""
    segment = segment_of(0)
    third_position = positions_of(segment)[2]
    cursor = cursor_of(
        stored(segment),
        from_offset=15,
        entry=OffsetIndexEntry(offset=15, position=third_position),
    )

    with pytest.raises(CorruptError, match="index does not match the log"):
        fed(cursor, segment.log[third_position:])


def test_feed_when_batches_repeat_then_corrupt() -> None:
    batch = build_batch(records(10))
    segment = build_segment([batch, build_batch(records(10, base_offset=10))])

    with pytest.raises(CorruptError, match="offsets are outside the expected range"):
        fed(cursor_of(stored(segment)), batch + batch)
