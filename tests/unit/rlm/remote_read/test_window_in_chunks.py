"""A log in chunks of any size gives the same as one chunk, even if it is damaged."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from rlm.remote_read.chunk_window import BatchStart, ChunkWindow, Cut, Incomplete, SegmentChunk
from rsm.segment.coverage import StoredRange
from rsm.segment.errors import CorruptError
from tests.unit.rsm.segment.batches.random_logs import RandomLog, random_logs


def chunks_of(pieces: Sequence[bytes]) -> list[SegmentChunk]:
    chunks: list[SegmentChunk] = []
    for piece in filter(None, pieces):
        position = chunks[-1].end_position if chunks else 0
        chunks.append(SegmentChunk(piece, position))
    return chunks


def cuts_of(
    stored: StoredRange, chunks: list[SegmentChunk], max_bytes: int
) -> tuple[bytes, list[tuple[int, int, int, int]], str]:
    """Return what a gateway serves a reader from the start, with as few chunks as possible."""
    served = bytearray()
    cuts: list[tuple[int, int, int, int]] = []
    begin, offset = BatchStart(position=0), stored.offsets.start_offset
    first, last = 0, 0
    try:
        while last < len(chunks):
            window = ChunkWindow(stored, chunks[first : last + 1])
            cut = window.cut(begin, offset, max_bytes=max_bytes, min_one_batch=True)
            if cut is None:
                return bytes(served), cuts, "end"
            if isinstance(cut, Incomplete):
                begin = BatchStart(position=cut.position, at_least_offset=cut.next_offset)
                last += 1
                continue
            assert window.checked(cut.position, cut.base_offset, max_bytes=max_bytes) == cut
            served += b"".join(window.view(cut.position, cut.end_position))
            cuts.append(_numbers(cut))
            offset = cut.next_offset
            begin = BatchStart(position=cut.end_position, at_least_offset=offset)
            while first < len(chunks) and chunks[first].end_position <= begin.position:
                first += 1
            last = max(first, last)
    except CorruptError as corrupt:
        return bytes(served), cuts, str(corrupt)
    return bytes(served), cuts, "end" if offset >= stored.offsets.end_offset else "incomplete"


def _numbers(cut: Cut) -> tuple[int, int, int, int]:
    return cut.position, cut.end_position, cut.base_offset, cut.next_offset


@given(log=random_logs())
def test_cut_when_a_log_is_in_chunks_then_each_batch_as_of_one_chunk(log: RandomLog) -> None:
    """Scenario 62 and 65; one batch in each response."""
    stored = log.stored()

    in_chunks = cuts_of(stored, chunks_of(log.pieces), 1)

    assert in_chunks == cuts_of(stored, chunks_of([log.content]), 1)


@given(log=random_logs(), max_bytes=st.integers(1, 3_000))
def test_cut_when_a_log_is_in_chunks_then_all_bytes_as_of_one_chunk(
    log: RandomLog, max_bytes: int
) -> None:
    """Responses may be shorter where a chunk is missing, but not otherwise different."""
    stored = log.stored()

    served, _, end = cuts_of(stored, chunks_of(log.pieces), max_bytes)

    whole, _, whole_end = cuts_of(stored, chunks_of([log.content]), max_bytes)
    assert (served, end) == (whole, whole_end)


@given(log=random_logs())
def test_check_on_when_a_log_is_in_chunks_then_ends_where_one_chunk_does(log: RandomLog) -> None:
    chunks = chunks_of(log.pieces)
    position = 0
    for number, chunk in enumerate(chunks):
        if position >= chunk.position:
            position = ChunkWindow(log.stored(), chunks[number:]).check_on(position)

    assert position == ChunkWindow(log.stored(), chunks_of([log.content])).check_on(0)
