from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.indexes import (
    OffsetIndex,
    OffsetIndexEntry,
    TimeIndex,
    TimeIndexEntry,
    TransactionIndex,
    cut_preallocated,
)
from rsm.segment.local_segment import AbortedTransaction
from rsm.segment.ranges import OffsetRange

OFFSETS = OffsetRange(start_offset=1_000, end_offset=2_000)


def offset_entries(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def time_entries(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def aborted(first_offset: int, last_offset: int, producer_id: int = 1) -> AbortedTransaction:
    return AbortedTransaction(
        producer_id=producer_id,
        first_offset=first_offset,
        last_offset=last_offset,
        last_stable_offset=first_offset,
    )


@st.composite
def any_offset_entries(draw: st.DrawFn) -> list[tuple[int, int]]:
    relative = sorted(draw(st.sets(st.integers(0, 999), max_size=20)))
    positions = sorted(
        draw(st.sets(st.integers(0, 49_999), min_size=len(relative), max_size=len(relative)))
    )
    return list(zip(relative, positions, strict=True))


@given(entries=any_offset_entries(), offset=st.integers(900, 2_100))
def test_offset_index_when_looked_up_then_last_entry_at_or_below(
    entries: list[tuple[int, int]], offset: int
) -> None:
    index = OffsetIndex.parse(offset_entries(*entries), offsets=OFFSETS, log_bytes=50_000)

    found = index.lookup(offset)

    below = [(1_000 + o, p) for o, p in entries if 1_000 + o <= offset]
    assert (found.offset, found.position) == (below[-1] if below else (1_000, 0))


@given(entries=any_offset_entries())
def test_offset_index_when_parsed_then_entries_and_bytes_come_back(
    entries: list[tuple[int, int]],
) -> None:
    data = offset_entries(*entries)

    index = OffsetIndex.parse(data, offsets=OFFSETS, log_bytes=50_000)

    assert index.to_bytes() == data
    assert len(index) == len(entries)
    assert list(index.entries()) == [
        OffsetIndexEntry(offset=1_000 + offset, position=position) for offset, position in entries
    ]


@pytest.mark.parametrize(
    "data",
    [
        offset_entries((5, 50))[:-1],
        offset_entries((5, 50), (5, 60)),
        offset_entries((5, 50), (4, 60)),
        offset_entries((5, 50), (6, 50)),
        offset_entries((5, 50), (6, 49)),
        offset_entries((-1, 50)),
        offset_entries((1_000, 50)),
        offset_entries((5, -1)),
        offset_entries((5, 50_000)),
        offset_entries((5, 50), (0, 0)),
    ],
    ids=[
        "cut",
        "same offset",
        "offset back",
        "same position",
        "position back",
        "offset below",
        "offset above",
        "position below",
        "position after the log",
        "zeros at the end",
    ],
)
def test_offset_index_when_an_entry_is_out_of_place_then_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptError):
        OffsetIndex.parse(data, offsets=OFFSETS, log_bytes=50_000)


@given(
    stamps=st.sets(st.integers(0, 500), max_size=20),
    steps=st.lists(st.integers(0, 40), min_size=20, max_size=20),
    wanted=st.integers(-2, 600),
)
def test_time_index_when_looked_up_then_last_entry_at_or_below(
    stamps: set[int], steps: list[int], wanted: int
) -> None:
    entries = [(stamp, sum(steps[: n + 1])) for n, stamp in enumerate(sorted(stamps))]
    data = time_entries(*entries)

    index = TimeIndex.parse(data, offsets=OFFSETS)

    below = [(t, 1_000 + o) for t, o in entries if t <= wanted]
    timestamp_ms, offset = below[-1] if below else (-1, 1_000)
    assert index.lookup(wanted) == TimeIndexEntry(timestamp_ms=timestamp_ms, offset=offset)
    assert index.to_bytes() == data


@pytest.mark.parametrize(
    "data",
    [
        time_entries((5, 50))[:-1],
        time_entries((5, 50), (5, 60)),
        time_entries((5, 50), (4, 60)),
        time_entries((5, 50), (6, 49)),
        time_entries((-1, 50)),
        time_entries((5, -1)),
        time_entries((5, 1_000)),
    ],
    ids=["cut", "same time", "time back", "offset back", "no time", "below", "above"],
)
def test_time_index_when_an_entry_is_out_of_place_then_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptError):
        TimeIndex.parse(data, offsets=OFFSETS)


def test_transaction_index_when_written_and_parsed_then_transactions_come_back() -> None:
    transactions = (aborted(10, 1_010, producer_id=3), aborted(1_005, 1_020, producer_id=4))
    data = TransactionIndex(transactions=transactions).to_bytes()

    assert data[:34] == struct.pack(">hqqqq", 0, 3, 10, 1_010, 10)
    assert TransactionIndex.parse(data, offsets=OFFSETS).transactions == transactions


@given(start=st.integers(0, 60), length=st.integers(1, 60))
def test_transaction_index_when_asked_for_a_range_then_overlapping_ones(
    start: int, length: int
) -> None:
    transactions = (aborted(0, 10), aborted(5, 20), aborted(25, 25), aborted(21, 50))
    wanted = OffsetRange(start_offset=start, end_offset=start + length)

    found = TransactionIndex(transactions=transactions).overlapping(wanted)

    assert found == tuple(
        each
        for each in transactions
        if set(range(each.first_offset, each.last_offset + 1)) & set(range(start, start + length))
    )


@pytest.mark.parametrize(
    "transactions",
    [
        (aborted(10, 999),),
        (aborted(10, 2_000),),
        (aborted(1_011, 1_010),),
        (aborted(-1, 1_010),),
        (aborted(10, 1_010, producer_id=-1),),
        (aborted(10, 1_010), aborted(11, 1_010)),
    ],
    ids=["ends before", "ends after", "backwards", "negative", "no producer", "not ascending"],
)
def test_transaction_index_when_one_is_out_of_place_then_corrupt(
    transactions: tuple[AbortedTransaction, ...],
) -> None:
    data = TransactionIndex(transactions=transactions).to_bytes()

    with pytest.raises(CorruptError):
        TransactionIndex.parse(data, offsets=OFFSETS)


def test_transaction_index_when_cut_within_an_entry_then_corrupt() -> None:
    with pytest.raises(CorruptError, match="within an entry"):
        TransactionIndex.parse(bytes(33), offsets=OFFSETS)


def test_transaction_index_when_of_another_version_then_unsupported() -> None:
    with pytest.raises(UnsupportedError):
        TransactionIndex.parse(struct.pack(">hqqqq", 1, 3, 10, 1_010, 10), offsets=OFFSETS)


@given(entries=any_offset_entries().filter(lambda each: (0, 0) not in each))
def test_cut_preallocated_when_zeros_follow_then_entries_remain(
    entries: list[tuple[int, int]],
) -> None:
    data = offset_entries(*entries)

    assert cut_preallocated(data + bytes(1_024), entry_bytes=8) == data


@pytest.mark.parametrize("base_offset", [0, 1_000])
def test_offset_index_when_asked_where_a_batch_ends_then_after_its_own_entry(
    base_offset: int,
) -> None:
    """Entries name the last offset of their batch; here each batch but the first has an entry."""
    entries = b"".join(struct.pack(">ii", 10 * n + 9, 500 * n) for n in range(1, 5))
    index = OffsetIndex(base_offset=base_offset, data=entries)

    ends = [index.end_position(base_offset + offset) for offset in (0, 9, 10, 19, 25, 39, 45)]

    assert ends == [1000, 1000, 1000, 1500, 1500, None, None]
