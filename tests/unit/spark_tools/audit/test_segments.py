from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.spi import SegmentRecord
from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.state.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from spark_tools.audit.segments import PartitionRecords, examine
from spark_tools.audit.totals import TotalsByTopic
from tests.metadata_builder import (
    DELETE_STARTED,
    DELETING,
    FINISHED,
    ORDERS,
    STARTED,
    log_starts,
    open_segment_metadata,
    segment_metadata,
)

CUT_OFF_MS = 10_000


def record(
    number: int,
    start: int,
    end: int,
    *,
    state: SegmentState = FINISHED,
    epoch: int = 0,
    changed_ms: int = 0,
    deadline_ms: int = 0,
) -> SegmentRecord:
    metadata = segment_metadata(number, start, end, epochs=((epoch, start),), state=state)
    return SegmentRecord(metadata=metadata, copy_deadline_ms=deadline_ms, changed_ms=changed_ms)


def open_record(number: int, start: int) -> SegmentRecord:
    """Return the record of a copy in progress, whose end is not known yet."""
    metadata = open_segment_metadata(number, start)
    return SegmentRecord(metadata=metadata, copy_deadline_ms=0, changed_ms=CUT_OFF_MS)


def found(
    *segments: SegmentRecord, state: PartitionState | None = None
) -> list[tuple[str, int, int]]:
    state = state or PartitionState(lineage=Lineage.of((0, 0)))
    partition = PartitionRecords(topic_id_partition=ORDERS, state=state, segments=segments)
    findings = examine(partition, cut_off_ms=CUT_OFF_MS)
    return [(each.kind, each.start_offset, each.end_offset) for each in findings]


def test_examine_when_segments_follow_each_other_then_nothing() -> None:
    assert found(record(1, 0, 10), record(2, 10, 20)) == []


def test_examine_when_segments_overlap_then_found() -> None:
    assert found(record(1, 0, 10), record(2, 5, 8), record(3, 9, 20)) == [
        ("overlap", 5, 8),
        ("overlap", 9, 20),
    ]


def test_examine_when_a_merged_segment_and_its_parts_are_stored_then_the_parts_are_found() -> None:
    """The findings count the bytes that the store has twice, not also the merged segment."""
    merged, *parts = record(9, 0, 30), record(1, 0, 10), record(2, 10, 20), record(3, 20, 30)

    assert found(*parts, merged) == [("overlap", 0, 10), ("overlap", 10, 20), ("overlap", 20, 30)]


def test_examine_when_there_is_a_hole_then_found_unless_it_is_on_record() -> None:
    """R6."""
    segments = (record(1, 0, 10), record(2, 15, 20))
    gap = RecordedGap(
        offsets=OffsetRange(start_offset=10, end_offset=15), reason=GapReason.SHED, recorded_ms=1
    )
    lineage = Lineage.of((0, 0))

    assert found(*segments) == [("gap", 10, 15)]
    assert (
        found(*segments, state=PartitionState(lineage=lineage, recorded_gaps=(gap,), gaps_epoch=0))
        == []
    )
    beyond = PartitionState(lineage=lineage, log_starts=log_starts(15))
    assert [kind for kind, _, _ in found(*segments, state=beyond)] == ["below_log_start"]


@pytest.mark.parametrize(
    ("between", "last_changed_ms", "gaps"),
    [
        ([record(2, 10, 20, state=STARTED, deadline_ms=CUT_OFF_MS)], 0, []),
        ([record(2, 10, 20, state=STARTED, deadline_ms=CUT_OFF_MS - 1)], 0, [(10, 20)]),
        ([record(2, 12, 20, state=STARTED, changed_ms=CUT_OFF_MS)], 0, []),
        ([record(2, 10, 15, state=STARTED, changed_ms=CUT_OFF_MS)], 0, [(15, 20)]),
        ([open_record(2, 10)], 0, []),
        ([open_record(2, 12)], 0, []),
        ([], CUT_OFF_MS, []),
        ([], CUT_OFF_MS - 1, [(10, 20)]),
    ],
)
def test_examine_when_copies_are_under_way_then_a_hole_is_found_once_it_is_old(
    between: list[SegmentRecord], last_changed_ms: int, gaps: list[tuple[int, int]]
) -> None:
    """Copies begin and end in any order."""
    last = record(3, 20, 30, changed_ms=last_changed_ms)

    holes = [each for each in found(record(1, 0, 10), *between, last) if each[0] == "gap"]

    assert holes == [("gap", *gap) for gap in gaps]


@pytest.mark.parametrize(
    ("trimmed", "segments", "gaps"),
    [
        (200, [record(1, 100, 200)], [(50, 100)]),
        (200, [record(1, 100, 200, changed_ms=CUT_OFF_MS)], [(50, 100)]),
        (80, [record(1, 100, 200)], [(50, 80)]),  # the broker has the rest
        (None, [record(1, 100, 200)], []),
        (50, [record(1, 100, 200)], []),
        (200, [record(1, 0, 150)], [(150, 200)]),
        (200, [], [(50, 200)]),
        (200, [record(1, 0, 70), record(2, 90, 200)], [(70, 90)]),
    ],
)
def test_examine_when_what_was_trimmed_is_not_stored_then_found(
    trimmed: int | None, segments: list[SegmentRecord], gaps: list[tuple[int, int]]
) -> None:
    """Readers get errors there, before the first stored offset and after the last as well."""
    state = PartitionState(
        lineage=Lineage.of((0, 0)), log_starts=log_starts(50), trims=log_starts(trimmed)
    )

    assert found(*segments, state=state) == [("gap", *gap) for gap in gaps]


def test_examine_when_no_log_start_is_known_then_it_is_the_first_offset() -> None:
    state = PartitionState(lineage=Lineage.of((0, 0)), trims=log_starts(200))

    assert found(record(1, 100, 200), state=state) == []


def test_examine_when_clients_have_deleted_what_is_not_stored_then_nothing() -> None:
    state = PartitionState(
        lineage=Lineage.of((0, 0)),
        log_starts=log_starts(0),
        log_start_requests=log_starts(100),
        trims=log_starts(200),
    )

    assert found(record(1, 100, 200), state=state) == []


def test_examine_when_the_partition_is_being_deleted_then_nothing_need_be_stored() -> None:
    state = PartitionState(
        lineage=Lineage.of((0, 0)),
        log_starts=log_starts(0),
        trims=log_starts(200),
        deletion=DELETING,
    )

    assert found(record(1, 100, 150), record(2, 170, 200), state=state) == []


def test_examine_when_another_lineage_wrote_it_then_found() -> None:
    lineage = PartitionState(lineage=Lineage.of((0, 0), (2, 10)))

    segments = (record(1, 0, 10), record(2, 10, 20, epoch=1))
    assert found(*segments, state=lineage) == [("out_of_lineage", 10, 20)]


@pytest.mark.parametrize(
    ("segment", "kind"),
    [
        (record(1, 0, 10, state=STARTED, deadline_ms=9_999), "dangling_copy"),
        (record(1, 0, 10, state=STARTED, deadline_ms=10_000), None),
        (record(1, 0, 10, state=DELETE_STARTED, changed_ms=9_999), "dangling_delete"),
        (record(1, 0, 10, state=DELETE_STARTED, changed_ms=10_000), None),
    ],
)
def test_examine_when_an_attempt_dangles_then_found_once_it_is_old(
    segment: SegmentRecord, kind: str | None
) -> None:
    assert found(segment) == ([] if kind is None else [(kind, 0, 10)])


def test_totals_when_a_merged_segment_and_its_parts_are_stored_then_all_their_objects() -> None:
    """The store has both, and its operator pays for both."""
    sums = TotalsByTopic()
    for each in (record(1, 0, 10), record(2, 10, 20), record(9, 0, 20)):
        (stored, *_) = each.metadata.objects
        sums.add(replace(each.metadata, objects=(replace(stored, length_bytes=50),)))

    (totals,) = sums.totals([])

    assert (totals.segments_count, totals.stored_bytes) == (3, 150)


def test_totals_when_of_several_topics_then_the_largest_first() -> None:
    small = record(1, 0, 10).metadata
    objects = tuple(replace(each, length_bytes=50) for each in small.objects)
    large = replace(small, objects=objects)

    sums = TotalsByTopic()
    for each in (large, replace(large, state=STARTED)):
        sums.add(each)

    (totals,) = sums.totals([])
    assert (totals.topic, totals.segments_count, totals.stored_bytes) == ("orders", 1, 100)
