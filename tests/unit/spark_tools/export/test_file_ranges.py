"""Which offsets go into which file, and which lines the files get."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.ranges import OffsetRange
from spark_tools.export.file_ranges import (
    FileRange,
    WrittenFiles,
    cut,
    hulls,
    lines_of,
    written_name,
)
from spark_tools.export.ranges import ExportFormat, PlannedRange
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import Hole, Piece, SegmentPiece
from tests.metadata_builder import ORDERS
from tests.unit.spark_tools.export.test_ranges import OTHER, piece

FORMAT = ExportFormat.of(ReadOptions.of({"subscribe": ORDERS.topic}), by_date=False)


def offsets(start: int, end: int) -> OffsetRange:
    return OffsetRange(start_offset=start, end_offset=end)


def hole(start: int, end: int) -> Hole:
    return Hole(topic_id_partition=ORDERS, offsets=offsets(start, end))


def planned(start: int, end: int) -> PlannedRange:
    return PlannedRange(topic_id_partition=ORDERS, offsets=offsets(start, end))


def parts(pieces: list[Piece], *ranges: PlannedRange) -> list[str]:
    """Return the parts of files that take two segments; holes are marked."""
    sizes = [each.size_bytes for each in pieces if isinstance(each, SegmentPiece)]
    found = cut(ranges, pieces, 2 * max(sizes))
    return [("" if isinstance(each, FileRange) else "hole ") + str(each.offsets) for each in found]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([piece(0, 10)], ["[0, 30)"]),
        ([piece(0, 10), piece(10, 20), piece(20, 30)], ["[0, 20)", "[20, 30)"]),
        ([piece(5, 10), piece(15, 25), piece(25, 28)], ["[0, 25)", "[25, 30)"]),
        ([piece(0, 10), hole(10, 12), piece(12, 30)], ["[0, 10)", "hole [10, 12)", "[12, 30)"]),
        ([hole(0, 12), piece(12, 20)], ["hole [0, 12)", "[12, 30)"]),
        ([piece(0, 12), hole(12, 30)], ["[0, 12)", "hole [12, 30)"]),
        ([piece(0, 30)], ["[0, 30)"]),
        ([piece(0, 30, OTHER)], []),
    ],
)
def test_cut_when_segments_are_smaller_than_a_file_then_joined_and_nothing_left_out(
    pieces: list[Piece], expected: list[str]
) -> None:
    """A recorded gap between segments has no piece, and belongs to the file before it."""
    assert parts(pieces, planned(0, 30)) == expected


def test_cut_when_only_a_part_is_left_then_pieces_end_with_it() -> None:
    (first, second) = cut([planned(3, 8), planned(12, 30)], [piece(0, 10), piece(10, 30)], 1 << 40)

    assert isinstance(first, FileRange)
    assert isinstance(second, FileRange)
    assert [str(each.offsets) for each in first.pieces] == ["[3, 8)"]
    assert [str(each.offsets) for each in second.pieces] == ["[12, 30)"]


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 40)), min_size=1, max_size=8
    ),
    st.integers(1, 4000),
    st.integers(0, 30),
)
def test_cut_when_pieces_are_of_any_size_then_files_and_holes_are_the_whole_plan(
    drawn: list[tuple[bool, int, int]], file_bytes: int, skipped_offsets: int
) -> None:
    """A piece may be a few offsets of a small segment, whose computed size is 0."""
    pieces: list[Piece] = []
    start = 0
    for is_hole, length, size_bytes in drawn:
        found = piece(start, start + length)
        metadata = replace(found.stored.metadata, segment_size_bytes=size_bytes)
        stored = replace(found.stored, metadata=metadata)
        pieces.append(hole(start, start + length) if is_hole else replace(found, stored=stored))
        start += length
    plan = planned(min(skipped_offsets, start - 1), start)

    found_parts = list(cut([plan], pieces, file_bytes))

    covered = [offset for part in found_parts for offset in as_list(part.offsets)]
    assert covered == as_list(plan.offsets)
    for part in found_parts:
        if isinstance(part, FileRange):
            held = [offset for each in part.pieces for offset in as_list(each.offsets)]
            assert held == as_list(part.offsets)


def as_list(found: OffsetRange) -> list[int]:
    return list(range(found.start_offset, found.end_offset))


def test_rest_when_some_was_read_then_the_pieces_from_there_on() -> None:
    (whole,) = cut([planned(0, 30)], [piece(0, 10), piece(10, 30)], 1 << 40)
    assert isinstance(whole, FileRange)

    left = whole.rest(17, failures=2)

    assert left is not None
    assert (str(left.offsets), left.failures) == ("[17, 30)", 2)
    assert [str(each.offsets) for each in left.pieces] == ["[17, 30)"]
    assert whole.rest(30) is None


def written(start: int, end: int, number: int, reached: int | None = None) -> WrittenFiles:
    file_range = FileRange(topic_id_partition=ORDERS, offsets=offsets(start, end), pieces=())
    return WrittenFiles(
        file_range=file_range,
        end_offset=end if reached is None else reached,
        records_count=5,
        names=(f"date=2030-05-17/part-{number:05d}-{UUID(int=number)}.parquet",),
    )


def test_lines_when_ranges_touch_then_one_line_with_the_files_of_all() -> None:
    every = [written(10, 20, 1), written(0, 10, 0), written(25, 40, 2, reached=30)]

    one, other = lines_of([*every, written(40, 50, 3, reached=40)], FORMAT, "attempt")

    assert (str(one.offsets), one.records_count) == ("[0, 20)", 10)
    assert (str(other.offsets), other.records_count) == ("[25, 30)", 5)
    assert other.files == (f"date=2030-05-17/{25:020d}-{30:020d}-part-00002-{UUID(int=2)}.parquet",)
    assert [written_name(name) for name in one.files] == [
        *written(0, 10, 0).names,
        *written(10, 20, 1).names,
    ]


def test_hulls_when_of_several_partitions_then_a_range_for_each() -> None:
    pieces = [piece(0, 10), piece(10, 30), piece(0, 7, OTHER)]
    other = PlannedRange(topic_id_partition=OTHER, offsets=offsets(0, 7))
    files = [
        each for each in cut([planned(0, 30), other], pieces, 1) if isinstance(each, FileRange)
    ]

    assert len(files) == 3
    assert {tip: str(each) for tip, each in hulls(files).items()} == {
        ORDERS: "[0, 30)",
        OTHER: "[0, 7)",
    }
