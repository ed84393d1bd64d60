"""Whole, checked batches in chunks that begin and end anywhere."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.remote_read.chunk_window import BatchStart, ChunkWindow, Cut, Incomplete, SegmentChunk
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OffsetIndexEntry
from tests.remote_world import RemoteWorld, positions_of, segment_of
from tests.segment_builder import BuiltSegment

SEGMENT = segment_of(0)
BOUNDS = positions_of(SEGMENT)
START = BatchStart(position=0)


def stored(segment: BuiltSegment = SEGMENT) -> StoredRange:
    world = RemoteWorld()
    world.claim()
    return StoredRange(metadata=world.store(segment), offsets=segment.offsets)


def chunks_at(*cuts: int) -> list[SegmentChunk]:
    """Return the segment's log, cut at these positions, with writable content."""
    bounds = [0, *cuts, len(SEGMENT.log)]
    return [
        SegmentChunk(bytearray(SEGMENT.log[begin:end]), begin) for begin, end in pairwise(bounds)
    ]


def cut(
    chunks: list[SegmentChunk], begin: BatchStart = START, offset: int = 0, max_bytes: int = 1 << 20
) -> Cut | Incomplete | None:
    window = ChunkWindow(stored(), chunks)
    return window.cut(begin, offset, max_bytes=max_bytes, min_one_batch=True)


def test_cut_when_a_batch_was_checked_then_it_is_not_checked_again() -> None:
    """Fifty readers of one chunk pay for one check of each batch."""
    chunks = chunks_at(BOUNDS[5] + 100)
    checked = cut(chunks)
    chunks[0].content[BOUNDS[2] + 200] ^= 1

    again = cut(chunks)

    assert again == checked


def test_cut_when_batch_was_checked_with_its_end_and_that_is_gone_then_incomplete() -> None:
    first, second = chunks_at(BOUNDS[5] + 100)
    cut([first, second])

    found = cut([first], offset=50)

    assert found == Incomplete(position=BOUNDS[5], end_position=BOUNDS[6], next_offset=50)


def test_cut_when_started_earlier_than_before_then_joined_to_what_was_checked() -> None:
    chunks = chunks_at()
    cut(chunks, BatchStart(position=BOUNDS[4]), 40)
    run = chunks[0].run
    assert run is not None
    assert run.position == BOUNDS[4]

    found = cut(chunks, BatchStart(position=BOUNDS[2]), 20)

    assert found == Cut(
        position=BOUNDS[2], end_position=BOUNDS[10], base_offset=20, next_offset=100
    )
    assert chunks[0].run is not None
    assert [batch.position for batch in map(chunks[0].run.__getitem__, range(8))] == BOUNDS[2:10]


def test_cut_when_prefix_of_a_batch_is_split_then_reported_how_much_is_needed() -> None:
    first, second = chunks_at(BOUNDS[3] + 5)

    found = cut([first], offset=30)

    assert found == Incomplete(position=BOUNDS[3], end_position=BOUNDS[3] + 17, next_offset=30)
    assert isinstance(cut([first, second], offset=30), Cut)


def test_cut_when_index_leads_into_a_batch_then_corrupt() -> None:
    """Scenario 17: a wrong index cannot make a reader serve garbage."""
    with pytest.raises(CorruptError):
        cut(chunks_at(), BatchStart(position=BOUNDS[3] + 1), 30)


def test_cut_when_index_leads_into_a_batch_that_was_checked_then_corrupt() -> None:
    chunks = chunks_at()
    cut(chunks)

    with pytest.raises(CorruptError, match="no batch begins at the position"):
        cut(chunks, BatchStart(position=BOUNDS[3] + 1), 30)


def test_cut_when_index_leads_past_what_it_names_then_corrupt() -> None:
    """Scenario 17: a wrong index cannot make a reader skip a batch."""
    entry = OffsetIndexEntry(offset=15, position=BOUNDS[2])

    with pytest.raises(CorruptError, match="index does not match the log"):
        cut(chunks_at(), BatchStart(position=BOUNDS[2], entry=entry), 15)


def test_view_when_over_chunks_then_parts_of_them_without_a_copy() -> None:
    chunks = chunks_at(BOUNDS[1] + 7, BOUNDS[1] + 9)
    window = ChunkWindow(stored(), chunks)

    parts = window.view(BOUNDS[1], BOUNDS[2])

    assert b"".join(parts) == SEGMENT.log[BOUNDS[1] : BOUNDS[2]]
    assert [part.obj for part in parts] == [chunk.content.obj for chunk in chunks]


def checked(chunks: list[SegmentChunk], offset: int, max_bytes: int) -> Cut | None:
    window = ChunkWindow(stored(), chunks)
    return window.checked(BOUNDS[offset // 10], offset, max_bytes=max_bytes)


def test_checked_when_some_was_checked_then_only_that_is_given() -> None:
    chunks = chunks_at(BOUNDS[5] + 100)
    first = cut(chunks, max_bytes=BOUNDS[3])

    assert checked(chunks, 0, BOUNDS[3]) == first
    assert checked(chunks, 0, BOUNDS[9]) == first
    assert checked(chunks, 40, 1) is None


def test_checked_when_the_first_batch_is_larger_than_the_limit_then_given() -> None:
    chunks = chunks_at(BOUNDS[5] + 100)
    cut(chunks)

    assert checked(chunks, 10, 1) == cut(chunks, BatchStart(position=BOUNDS[1]), 10, max_bytes=1)


def test_checked_when_somebody_checks_then_not_waited_for() -> None:
    chunks = chunks_at()
    cut(chunks)

    with chunks[0].lock:
        found = checked(chunks, 0, 1)

    assert found is None


@pytest.mark.parametrize("cuts", [(), (BOUNDS[5] + 100,), (BOUNDS[2], BOUNDS[2] + 7, BOUNDS[8])])
@given(begin=st.integers(0, 9), max_bytes=st.integers(1, BOUNDS[10]))
def test_checked_when_all_was_checked_then_as_cut(
    cuts: tuple[int, ...], begin: int, max_bytes: int
) -> None:
    chunks = chunks_at(*cuts)
    position = BOUNDS[begin]
    ChunkWindow(stored(), chunks).check_on(0)

    found = checked(chunks, 10 * begin, max_bytes)

    assert found == cut(chunks, BatchStart(position=position), 10 * begin, max_bytes=max_bytes)


@pytest.mark.parametrize("cuts", [(), (BOUNDS[5] + 100,), (BOUNDS[2], BOUNDS[2] + 7, BOUNDS[8])])
def test_check_on_when_it_is_known_where_batches_begin_then_all_are_checked(
    cuts: tuple[int, ...],
) -> None:
    chunks = chunks_at(*cuts)

    end_position = ChunkWindow(stored(), chunks).check_on(0)

    assert end_position == BOUNDS[10]
    assert checked(chunks, 0, 1 << 20) == cut(chunks_at(*cuts))


def test_check_on_when_a_batch_is_corrupt_then_ends_before_it_and_says_nothing() -> None:
    chunks = chunks_at(BOUNDS[6])
    chunks[0].content[BOUNDS[4] + 100] ^= 1

    assert ChunkWindow(stored(), chunks).check_on(0) == BOUNDS[4]

    assert chunks[0].unchecked_position == BOUNDS[4]
    with pytest.raises(CorruptError):
        cut(chunks, BatchStart(position=BOUNDS[4]), 40)


def with_first_offset_lowered(chunk: SegmentChunk, by: int) -> SegmentChunk:
    """Change a chunk in a way that no CRC shows; `chunk` begins with a batch."""
    (base_offset,) = struct.unpack_from(">q", chunk.content)
    struct.pack_into(">q", chunk.content, 0, base_offset - by)
    return chunk


@pytest.mark.parametrize("is_verified", [False, True])
@pytest.mark.parametrize("by", [1, 20])
def test_cut_when_offsets_go_back_in_the_next_chunk_then_corrupt_and_no_batch_is_skipped(
    by: int, *, is_verified: bool
) -> None:
    first, second = chunks_at(BOUNDS[5])
    with_first_offset_lowered(second, by)
    if is_verified:
        cut([second], BatchStart(position=BOUNDS[5]), 60)

    assert cut([first, second]) == Cut(
        position=0, end_position=BOUNDS[5], base_offset=0, next_offset=50
    )
    assert checked([first, second], 0, 1 << 20) == cut([first])
    with pytest.raises(CorruptError, match="offsets are outside the expected range"):
        cut([first, second], offset=50)


def test_cut_when_a_read_ended_before_offsets_that_go_back_then_corrupt() -> None:
    _, second = chunks_at(BOUNDS[5])
    with_first_offset_lowered(second, 20)
    begin = BatchStart(position=BOUNDS[5], at_least_offset=50)

    with pytest.raises(CorruptError, match="offsets are outside the expected range"):
        cut([second], begin, 50)

    assert checked([second], 50, 1 << 20) is None


def test_cut_when_a_batch_is_not_whole_then_its_lowest_offset_is_kept_until_it_is() -> None:
    first, second, third = chunks_at(BOUNDS[5], BOUNDS[5] + 40)
    with_first_offset_lowered(second, 20)
    assert isinstance(cut([first, second], offset=50), Incomplete)

    with pytest.raises(CorruptError, match="offsets are outside the expected range"):
        cut([second, third], BatchStart(position=BOUNDS[5]), 50)


def test_cut_when_a_chunk_was_read_alone_before_then_its_first_offset_is_checked_too() -> None:
    first, second, third = chunks_at(BOUNDS[5], BOUNDS[5] + 40)
    with_first_offset_lowered(second, 20)
    assert isinstance(cut([second], BatchStart(position=BOUNDS[5]), 50), Incomplete)

    with pytest.raises(CorruptError, match="offsets are outside the expected range"):
        cut([first, second, third], offset=50)


def test_check_on_when_offsets_go_back_in_the_next_chunk_then_ends_before_it() -> None:
    first, second = chunks_at(BOUNDS[5])
    with_first_offset_lowered(second, 1)

    assert ChunkWindow(stored(), [first, second]).check_on(0) == BOUNDS[5]
