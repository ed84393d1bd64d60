from __future__ import annotations

from dataclasses import replace

import pytest

from rsm.segment.coverage import StoredRange
from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange
from spark_tools.export.file_ranges import FileRange, WrittenFiles, lines_of
from spark_tools.export.ranges import (
    ExportedRange,
    ExportFormat,
    PlannedRange,
    lost,
    remaining,
    require_same_rows,
)
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import SegmentPiece
from tests.metadata_builder import FINISHED, ORDERS, segment_metadata

OPTIONS = ReadOptions.of({"subscribe": ORDERS.topic})
OTHER = replace(ORDERS, partition=1)


def piece(start: int, end: int, partition: TopicIdPartition = ORDERS) -> SegmentPiece:
    metadata = segment_metadata(1, start, end, partition=partition, state=FINISHED)
    stored = StoredRange(metadata=metadata, offsets=metadata.offsets)
    return SegmentPiece(stored=stored, offsets=OffsetRange(start_offset=start, end_offset=end))


def test_remaining_when_nothing_was_exported_then_one_range_per_partition() -> None:
    planned = remaining([piece(5, 10), piece(10, 30), piece(0, 7, OTHER)], [])

    found = [(each.topic_id_partition, str(each.offsets)) for each in planned]
    assert found == [(ORDERS, "[5, 30)"), (OTHER, "[0, 7)")]


def done(
    *ranges: tuple[int, int], options: ReadOptions = OPTIONS, by_date: bool = False
) -> list[ExportedRange]:
    wanted = ExportFormat.of(options, by_date=by_date)
    return [line for each in ranges for line in lines_of([written(*each)], wanted, "attempt")]


def written(start: int, end: int) -> WrittenFiles:
    offsets = OffsetRange(start_offset=start, end_offset=end)
    file_range = FileRange(topic_id_partition=ORDERS, offsets=offsets, pieces=())
    return WrittenFiles(file_range=file_range, end_offset=end, records_count=1, names=("part-1-x",))


def planned(start: int, end: int) -> PlannedRange:
    offsets = OffsetRange(start_offset=start, end_offset=end)
    return PlannedRange(topic_id_partition=ORDERS, offsets=offsets)


def left(pieces: list[SegmentPiece], exported: list[ExportedRange]) -> list[str]:
    return [str(each.offsets) for each in remaining(pieces, exported)]


@pytest.mark.parametrize(
    ("exported", "expected"),
    [
        ([(0, 10)], ["[10, 30)"]),
        ([(0, 10), (10, 30)], []),
        ([(20, 30)], ["[0, 20)"]),
        ([(5, 8), (20, 25)], ["[0, 5)", "[8, 20)", "[25, 30)"]),
    ],
)
def test_remaining_when_exported_before_then_what_was_not(
    exported: list[tuple[int, int]], expected: list[str]
) -> None:
    """Ranges below exported ones count, too: a segment may be recorded late."""
    assert left([piece(0, 10), piece(10, 30)], done(*exported)) == expected


def test_remaining_when_nothing_is_stored_of_what_is_left_then_it_is_no_range() -> None:
    """A recorded gap between the exported and the stored offsets."""
    assert left([piece(0, 10), piece(20, 30)], done((0, 10), (20, 30))) == []


def test_remaining_when_another_topic_of_the_name_was_exported_then_all_of_this_one() -> None:
    other = [replace(each, topic_id="AAAAAAAAAAAAAAAAAAAAAA") for each in done((0, 30))]

    assert left([piece(0, 30)], other) == ["[0, 30)"]


@pytest.mark.parametrize(
    ("exported", "gaps", "expected"),
    [
        ([], [], ""),
        ([(0, 300)], [], ""),
        ([(0, 200)], [], "[200, 300)"),
        ([(0, 100), (100, 200)], [], "[200, 300)"),
        ([(0, 200)], [(200, 300)], ""),
        ([(0, 200)], [(200, 250)], "[250, 300)"),
        ([(0, 200)], [(230, 240), (220, 225)], "[200, 220) [225, 230) [240, 300)"),
        ([(0, 200), (400, 500)], [], "[200, 300)"),
        ([(400, 500)], [], ""),
    ],
)
def test_lost_when_the_log_begins_above_what_was_exported_then_what_expired(
    exported: list[tuple[int, int]], gaps: list[tuple[int, int]], expected: str
) -> None:
    known = [OffsetRange(start_offset=start, end_offset=end) for start, end in gaps]

    ascending = sorted(line.offsets for line in done(*exported))
    found = lost(planned(300, 400), ascending, known)

    assert " ".join(map(str, found)) == expected


@pytest.mark.parametrize(
    ("option", "value"), [("columns", "offset,value"), ("isolation", "read_committed")]
)
def test_rows_when_of_another_kind_than_before_then_refused(option: str, value: str) -> None:
    """Older rows would read as null, or be of other records."""
    other = ReadOptions.of({"subscribe": ORDERS.topic, option: value})

    with pytest.raises(InvalidConfigError, match=f"another value.*option={option}"):
        require_same_rows(done((0, 10)), ExportFormat.of(other, by_date=False))


def test_rows_when_by_date_and_before_not_then_refused() -> None:
    """Readers take no directories of two depths."""
    with pytest.raises(InvalidConfigError, match=r"another value.*option=--partition-by"):
        require_same_rows(done((0, 10)), ExportFormat.of(OPTIONS, by_date=True))


def test_rows_when_columns_are_the_same_in_another_order_then_taken() -> None:
    one, other = (
        ReadOptions.of({"subscribe": ORDERS.topic, "columns": columns})
        for columns in ("offset,value", "value,offset")
    )

    require_same_rows(done((0, 10), options=one), ExportFormat.of(other, by_date=False))
