from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.batches.batch import BatchHeader, parse_header
from rsm.segment.batches.index_builder import IndexBuilder, matches_log
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OffsetIndex, TimeIndex
from rsm.segment.ranges import OffsetRange
from tests.segment_builder import pack_batch

BASE_OFFSET = 100
HEADER_ONLY = 61


def header(base_offset: int, last_offset: int, max_timestamp_ms: int, size: int) -> BatchHeader:
    """Return the header of a batch of `size` bytes."""
    return parse_header(
        memoryview(
            pack_batch(
                bytes(size - HEADER_ONLY),
                base_offset=base_offset,
                last_offset=last_offset,
                max_timestamp_ms=max_timestamp_ms,
            )
        )
    )


def build(headers: list[BatchHeader], interval_bytes: int = 1_000) -> tuple[OffsetIndex, TimeIndex]:
    builder = IndexBuilder(base_offset=BASE_OFFSET, index_interval_bytes=interval_bytes)
    for each in headers:
        builder.append(each)
    return builder.offset_index(), builder.time_index()


def offset_index(*entries: tuple[int, int]) -> OffsetIndex:
    data = b"".join(struct.pack(">ii", offset - BASE_OFFSET, at) for offset, at in entries)
    return OffsetIndex(base_offset=BASE_OFFSET, data=data)


def time_index(*entries: tuple[int, int]) -> TimeIndex:
    data = b"".join(struct.pack(">qi", stamp, offset - BASE_OFFSET) for stamp, offset in entries)
    return TimeIndex(base_offset=BASE_OFFSET, data=data)


@st.composite
def any_batches(draw: st.DrawFn) -> list[BatchHeader]:
    """Draw the batches of one segment: gaps between them, timestamps in any order or none."""
    headers = []
    offset = BASE_OFFSET + draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 15))):
        last_offset = offset + draw(st.integers(0, 5))
        timestamp_ms = draw(st.integers(-1, 10))
        headers.append(header(offset, last_offset, timestamp_ms, draw(st.integers(61, 700))))
        offset = last_offset + 1 + draw(st.integers(0, 2))
    return headers


# Five batches of 600 bytes with their timestamps; an entry is due at the third and the fifth.
FIVE = [
    header(100, 109, 50, 600),
    header(110, 119, 70, 600),
    header(120, 129, 60, 600),
    header(130, 139, 60, 600),
    header(140, 149, 90, 600),
]
FIVE_OFFSETS = ((129, 1_200), (149, 2_400))
FIVE_TIMES = ((70, 119), (90, 149))


def test_build_when_interval_is_exceeded_before_a_batch_then_it_gets_an_entry() -> None:
    built_offsets, built_times = build(FIVE)

    assert built_offsets == offset_index(*FIVE_OFFSETS)
    assert built_times == time_index(*FIVE_TIMES)


def test_build_when_bytes_equal_the_interval_then_no_entry_yet() -> None:
    built_offsets, _ = build([header(100 + n, 100 + n, 5, 500) for n in range(4)])

    assert built_offsets == offset_index((103, 1_500))


def test_build_when_rolled_then_greatest_timestamp_gets_a_last_entry() -> None:
    _, built_times = build([*FIVE, header(150, 159, 95, 600)])

    assert built_times == time_index((70, 119), (90, 149), (95, 159))


def test_build_when_greatest_timestamp_has_its_entry_then_no_second_one() -> None:
    _, built_times = build([*FIVE, header(150, 159, 90, 600), header(160, 169, 80, 600)])

    assert built_times == time_index(*FIVE_TIMES)


def test_build_when_several_batches_have_the_greatest_timestamp_then_first_ones_offset() -> None:
    _, built_times = build([header(100, 109, 5, 100), header(110, 119, 5, 100)])

    assert built_times == time_index((5, 109))


def test_build_when_no_batch_has_a_timestamp_then_time_index_is_empty() -> None:
    built_offsets, built_times = build([header(100 + n, 100 + n, -1, 600) for n in range(5)])

    assert len(built_offsets) == 2
    assert len(built_times) == 0


def test_append_when_offset_is_too_far_from_the_base_then_corrupt() -> None:
    builder = IndexBuilder(base_offset=BASE_OFFSET)

    with pytest.raises(CorruptError, match="not in the segment"):
        builder.append(header(BASE_OFFSET + (1 << 31), BASE_OFFSET + (1 << 31), 5, 100))


@given(batches=any_batches(), interval_bytes=st.integers(0, 1_500))
def test_build_when_batches_vary_then_indexes_parse_and_match(
    batches: list[BatchHeader], interval_bytes: int
) -> None:
    built_offsets, built_times = build(batches, interval_bytes)
    offsets = OffsetRange(start_offset=BASE_OFFSET, end_offset=batches[-1].next_offset)
    log_bytes = sum(each.length_bytes for each in batches)

    OffsetIndex.parse(built_offsets.to_bytes(), offsets=offsets, log_bytes=log_bytes)
    TimeIndex.parse(built_times.to_bytes(), offsets=offsets)

    assert matches_log(built_offsets, built_times, batches)


@given(batches=any_batches(), interval_bytes=st.integers(0, 1_500), offset=st.integers(100, 250))
def test_lookup_when_index_is_built_then_nothing_looked_for_was_passed(
    batches: list[BatchHeader], interval_bytes: int, offset: int
) -> None:
    built_offsets, _ = build(batches, interval_bytes)

    found = built_offsets.lookup(offset)

    position = 0
    for each in batches:
        assert position >= found.position or each.last_offset < offset
        position += each.length_bytes


def test_matches_when_an_append_of_many_batches_has_one_entry_then_true() -> None:
    """Older brokers index two batches of one append by the first position and the last offset."""
    assert matches_log(offset_index((139, 1_200)), time_index((70, 119), (90, 149)), FIVE)


@pytest.mark.parametrize(
    "entries",
    [
        ((129, 1_201),),
        ((119, 1_200),),
        ((119, 600), (119, 1_200)),
        ((129, 1_200), (149, 3_000)),
        ((109, 600),),
    ],
    ids=[
        "position within a batch",
        "offset before its batch",
        "next one at the same offset",
        "after the log",
        "off by a batch",
    ],
)
def test_matches_when_offset_index_is_not_the_logs_then_false(
    entries: tuple[tuple[int, int], ...],
) -> None:
    assert not matches_log(offset_index(*entries), time_index(*FIVE_TIMES), FIVE)


@pytest.mark.parametrize(
    "entries",
    [
        (),
        ((70, 119),),
        ((60, 129), (90, 149)),
        ((70, 109), (90, 149)),
        ((71, 119), (90, 149)),
        ((70, 119), (90, 150)),
    ],
    ids=[
        "empty",
        "greatest missing",
        "not the first to reach it",
        "before it is reached",
        "no batch's timestamp",
        "after the log",
    ],
)
def test_matches_when_time_index_is_not_the_logs_then_false(
    entries: tuple[tuple[int, int], ...],
) -> None:
    assert not matches_log(offset_index(*FIVE_OFFSETS), time_index(*entries), FIVE)
