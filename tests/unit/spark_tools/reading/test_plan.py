from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.state.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.errors import NotFoundError
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import BrokerPiece, Hole, Piece, SegmentPiece, joined, plan, split
from spark_tools.stored_partition import StoredPartition
from tests.metadata_builder import NEWEST_EPOCH, ORDERS, log_starts, segment_metadata

FINISHED = SegmentState.COPY_SEGMENT_FINISHED


def segment(number: int, start: int, end: int, *, epoch: int = 0) -> RemoteLogSegmentMetadata:
    return segment_metadata(number, start, end, epochs=((epoch, start),), state=FINISHED)


def stored(
    *segments: RemoteLogSegmentMetadata,
    log_start: int | None = None,
    lineage: Lineage | None = None,
) -> StoredPartition:
    state = PartitionState(lineage=lineage or Lineage.of((0, 0)), log_starts=log_starts(log_start))
    return StoredPartition(topic_id_partition=ORDERS, state=state, segments=segments)


def options(**given_options: str) -> ReadOptions:
    return ReadOptions.of({"subscribe": ORDERS.topic, **given_options})


def offsets_of(pieces: list[Piece]) -> list[tuple[int, int]]:
    return [(each.offsets.start_offset, each.offsets.end_offset) for each in pieces]


def bounds(start: int, end: int) -> dict[str, str]:
    return {
        "startingOffsets": f'{{"{ORDERS.topic}":{{"{ORDERS.partition}":{start}}}}}',
        "endingOffsets": f'{{"{ORDERS.topic}":{{"{ORDERS.partition}":{end}}}}}',
    }


def test_plan_when_segments_follow_each_other_then_a_piece_each() -> None:
    pieces = plan(stored(segment(1, 0, 10), segment(2, 10, 25)), options())

    assert offsets_of(pieces) == [(0, 10), (10, 25)]


def test_plan_when_nothing_is_stored_then_nothing_is_read() -> None:
    assert plan(stored(), options()) == []


def test_plan_when_bounded_then_pieces_are_cut() -> None:
    pieces = plan(stored(segment(1, 0, 10), segment(2, 10, 25)), options(**bounds(3, 12)))

    assert offsets_of(pieces) == [(3, 10), (10, 12)]


def test_plan_when_the_log_start_lies_in_a_segment_then_nothing_below_is_read() -> None:
    partition = stored(segment(1, 0, 10), segment(2, 10, 25), log_start=12)

    assert offsets_of(plan(partition, options())) == [(12, 25)]


def test_plan_when_nothing_is_stored_where_the_log_begins_then_that_is_a_hole() -> None:
    """A reader of the gateway gets an error there, too."""
    partition = stored(segment(1, 10, 25), log_start=5)

    with pytest.raises(NotFoundError, match=r"offsets are not stored.*\[5, 10\)"):
        plan(partition, options())

    hole, _ = plan(partition, options(mode="permissive"))
    assert isinstance(hole, Hole)
    assert offsets_of(plan(partition, options(**bounds(10, 25)))) == [(10, 25)]


def test_plan_when_the_log_begins_above_all_that_is_stored_then_nothing_is_read() -> None:
    assert plan(stored(segment(1, 0, 10), log_start=17), options()) == []


def test_plan_when_a_segment_is_of_another_lineage_then_only_what_agrees_is_read() -> None:
    lineage = Lineage.of((0, 0), (2, 20))
    partition = stored(
        segment(1, 0, 10), segment(2, 10, 30), segment(3, 20, 40, epoch=2), lineage=lineage
    )

    pieces = plan(partition, options())

    assert offsets_of(pieces) == [(0, 10), (10, 20), (20, 40)]


def test_plan_when_segments_overlap_then_each_offset_is_read_once() -> None:
    partition = stored(segment(1, 0, 10), segment(2, 5, 20), segment(3, 6, 15))

    pieces = plan(partition, options())

    assert offsets_of(pieces) == [(0, 10), (10, 20)]


def test_plan_when_there_is_a_hole_then_never_stepped_over_in_silence() -> None:
    partition = stored(segment(1, 0, 10), segment(2, 15, 20))

    with pytest.raises(NotFoundError, match=r"\[10, 15\)"):
        plan(partition, options())
    pieces = plan(partition, options(mode="permissive"))
    assert offsets_of(pieces) == [(0, 10), (10, 15), (15, 20)]
    assert [type(each) for each in pieces] == [SegmentPiece, Hole, SegmentPiece]


@pytest.mark.parametrize("offsets", [(-2, 21), (21, -1), (-2, 4)])
def test_plan_when_an_offset_is_not_stored_then_said(offsets: tuple[int, int]) -> None:
    partition = stored(segment(1, 0, 20), log_start=5)

    with pytest.raises(NotFoundError, match="outside of the readable range"):
        plan(partition, options(**bounds(*offsets)))


def test_plan_when_a_segment_is_older_than_asked_then_not_read() -> None:
    old = replace(segment(1, 0, 10), max_timestamp_ms=999)
    untimed = replace(segment(2, 10, 20), max_timestamp_ms=-1)
    new = replace(segment(3, 20, 30), max_timestamp_ms=1000)

    pieces = plan(stored(old, untimed, new), options(fromTimestamp="1000"))

    assert offsets_of(pieces) == [(10, 20), (20, 30)]


@given(
    edges=st.sets(st.integers(0, 200), min_size=2, max_size=8),
    wanted=st.tuples(st.integers(0, 200), st.integers(0, 200)),
    split_bytes=st.integers(1, 2_000),
)
def test_split_when_of_any_size_then_each_wanted_offset_is_in_one_piece(
    edges: set[int], wanted: tuple[int, int], split_bytes: int
) -> None:
    ordered = sorted(edges)
    segments = [
        segment(number, start, end) for number, (start, end) in enumerate(pairwise(ordered))
    ]
    low, high = (min(max(each, ordered[0]), ordered[-1]) for each in sorted(wanted))

    pieces = list(split(plan(stored(*segments), options(**bounds(low, high))), split_bytes))

    read = [offset for start, end in offsets_of(pieces) for offset in range(start, end)]
    assert read == list(range(low, high))


def test_plan_when_a_hole_is_on_record_then_stepped_over() -> None:
    """R6: recorded losses are read like a gap of compaction."""
    gap = RecordedGap(
        offsets=OffsetRange(start_offset=10, end_offset=15), reason=GapReason.SHED, recorded_ms=1
    )
    partition = stored(segment(1, 0, 10), segment(2, 15, 20))
    partition = replace(
        partition, state=replace(partition.state, recorded_gaps=(gap,), gaps_epoch=NEWEST_EPOCH)
    )

    assert offsets_of(plan(partition, options())) == [(0, 10), (15, 20)]


def continued(
    partition: StoredPartition, local_start: int, local_end: int, **given: str
) -> list[tuple[str, int, int]]:
    """Plan to the end of a broker's log; return the sources and their offsets."""
    local = OffsetRange(start_offset=local_start, end_offset=local_end)
    pieces = plan(partition, options(endingOffsets="latest", **given), local)
    names = {SegmentPiece: "stored", BrokerPiece: "broker", Hole: "hole"}
    return [
        (names[type(each)], each.offsets.start_offset, each.offsets.end_offset) for each in pieces
    ]


def test_plan_when_reading_continues_at_the_broker_then_no_gap_and_nothing_twice() -> None:
    """Stored offsets are read from the store, although the broker still has some of them."""
    partition = stored(segment(1, 0, 10), segment(2, 10, 25))

    assert continued(partition, 12, 40) == [
        ("stored", 0, 10),
        ("stored", 10, 25),
        ("broker", 25, 40),
    ]
    assert continued(partition, 25, 40)[-1] == ("broker", 25, 40)
    assert continued(partition, 12, 25) == [("stored", 0, 10), ("stored", 10, 25)]
    assert continued(stored(), 12, 40) == [("broker", 12, 40)]
    assert continued(stored(log_start=20), 12, 40) == [("broker", 20, 40)]
    assert continued(stored(log_start=50), 12, 40) == []


def test_plan_when_the_broker_has_what_lies_between_segments_then_it_is_read_there() -> None:
    partition = stored(segment(1, 0, 10), segment(2, 15, 20))

    assert continued(partition, 5, 30) == [
        ("stored", 0, 10),
        ("broker", 10, 15),
        ("stored", 15, 20),
        ("broker", 20, 30),
    ]


def test_plan_when_nobody_has_what_lies_before_the_broker_then_never_stepped_over() -> None:
    partition = stored(segment(1, 0, 10))

    with pytest.raises(NotFoundError, match=r"\[10, 15\)"):
        continued(partition, 15, 30)
    assert continued(partition, 15, 30, mode="permissive")[1:] == [
        ("hole", 10, 15),
        ("broker", 15, 30),
    ]


def test_plan_when_the_start_is_above_what_is_stored_then_only_the_broker_is_read() -> None:
    starting = f'{{"{ORDERS.topic}":{{"{ORDERS.partition}":27}}}}'

    found = continued(stored(segment(1, 0, 25)), 12, 40, startingOffsets=starting)

    assert found == [("broker", 27, 40)]


@given(
    edges=st.sets(st.integers(0, 60), min_size=2, max_size=6),
    local=st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted),
)
def test_plan_when_continued_anyhow_then_each_offset_is_read_once_or_is_a_hole(
    edges: set[int], local: list[int]
) -> None:
    bounds_of = sorted(edges)
    segments = [
        segment(number, start, end)
        for number, (start, end) in enumerate(pairwise(bounds_of))
        if number % 2 == 0
    ]

    found = continued(stored(*segments), local[0], local[1], mode="permissive")

    offsets = [offset for _, start, end in found for offset in range(start, end)]
    everything = [s.offsets for s in segments]
    if local[0] < local[1]:
        everything.append(OffsetRange(start_offset=local[0], end_offset=local[1]))
    first = min(each.start_offset for each in everything)
    assert offsets == list(range(first, max(each.end_offset for each in everything)))
    assert all(
        not any(offset in each for each in everything)
        for kind, start, end in found
        if kind == "hole"
        for offset in range(start, end)
    )


def sized(number: int, start: int, end: int, size_bytes: int) -> RemoteLogSegmentMetadata:
    return replace(segment(number, start, end), segment_size_bytes=size_bytes)


def test_joined_when_small_segments_follow_each_other_then_as_many_as_fit_are_a_task() -> None:
    segments = [sized(n, 10 * n, 10 * n + 10, 40) for n in range(5)]
    pieces = plan(stored(*segments), options())

    assert [len(task) for task in joined(pieces, 100)] == [2, 2, 1]
    assert [len(task) for task in joined(pieces, 80)] == [2, 2, 1]
    assert [len(task) for task in joined(pieces, 79)] == [1] * 5
    assert [piece for task in joined(pieces, 100) for piece in task] == pieces


def test_joined_when_of_other_partitions_or_of_no_segment_then_tasks_of_their_own() -> None:
    other = replace(ORDERS, partition=ORDERS.partition + 1)
    one = plan(stored(sized(1, 0, 10, 5)), options())
    hole = Hole(topic_id_partition=ORDERS, offsets=OffsetRange(start_offset=10, end_offset=20))
    local = BrokerPiece(topic_id_partition=ORDERS, offsets=hole.offsets)
    of_other = BrokerPiece(topic_id_partition=other, offsets=hole.offsets)
    after = plan(stored(sized(2, 20, 30, 5)), options(**bounds(20, 30)))

    tasks = joined([*one, hole, *after, local, of_other, *one], 1_000)

    assert [len(task) for task in tasks] == [1] * 6


@pytest.mark.parametrize(
    ("parallelism", "stored_mib", "expected_mib"),
    [(0, 1, 128), (4, 1, 4), (4, 256, 32), (4, 8_000, 128), (1_000, 8_000, 4)],
)
def test_task_bytes_when_cores_are_known_then_some_tasks_for_each(
    parallelism: int, stored_mib: int, expected_mib: int
) -> None:
    given = replace(options(), parallelism=parallelism)

    assert given.task_bytes(stored_mib << 20) == expected_mib << 20
    assert replace(given, split_bytes=7).task_bytes(stored_mib << 20) == 7
