"""Which small segments of a streamed partition are merged, and which a merge replaces."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.plan import DeleteSegment, plan
from rlm.policy.retention import log_pieces
from rlm.policy.stream import merging
from rlm.policy.stream.merging import (
    MERGE_GROWTH,
    MERGE_MAX_PARTS,
    MERGES_LEFT_MAX,
    RETENTION_SHARES,
    SMALL_SHARE,
    SegmentMerge,
    merged_segments,
    waiting_merges,
)
from rlm.policy.view import Damage, PartitionView, PolicyLimits
from rlmm.events.pause import PausableTask
from rlmm.events.policy import PolicyState
from rlmm.spi import SegmentRecord
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.partition_state import ReadLease
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState
from rsm.segment.offload_settings import OffloadMode
from rsm.segment.ranges import OffsetRange
from tests.unit.rlm.policy.views import HOUR_MS, NOW_MS, THEM, Given, policy, remote

FINISHED = SegmentState.COPY_SEGMENT_FINISHED
ROLLOVER_MS = 60_000
GREATEST_BYTES = 1_000_000
STREAMED = policy(
    offload_mode=OffloadMode.STREAM,
    offload_segment_max_bytes=GREATEST_BYTES,
    offload_segment_rollover_ms=ROLLOVER_MS,
)
LIMITS = PolicyLimits(local_trim_min_age_ms=0, merges_streams=True)
SMALL = tuple(remote(start, start + 100, size=1000) for start in range(0, 400, 100))
MERGED = remote(0, 400, size=4000)
GIVEN = Given(
    rolled=(), segments=SMALL, policy=STREAMED, limits=LIMITS, local_start=400, high_watermark=1050
)


def next_merge(view: PartitionView) -> SegmentMerge | None:
    return merging.next_merge(view, waiting_merges(view))


def bounds(merge: SegmentMerge | None) -> list[tuple[int, int]]:
    parts = () if merge is None else merge.parts
    return [(each.offsets.start_offset, each.offsets.end_offset) for each in parts]


def of(*segments: SegmentRecord, **changes: object) -> PartitionView:
    return replace(GIVEN, segments=segments, **changes).view()  # type: ignore[arg-type]  # its fields


def sized(*sizes: int) -> tuple[SegmentRecord, ...]:
    return tuple(remote(n * 10, n * 10 + 10, size=size) for n, size in enumerate(sizes))


def view_of_sizes(*sizes: int, greatest_bytes: int = GREATEST_BYTES) -> PartitionView:
    streamed = replace(STREAMED, offload_segment_max_bytes=greatest_bytes)
    end_offset = len(sizes) * 10
    return of(*sized(*sizes), policy=streamed, local_start=end_offset, high_watermark=end_offset)


def replaced(view: PartitionView) -> list[SegmentRecord]:
    return [each.record for each in merged_segments(view)]


def deleted(view: PartitionView) -> list[SegmentRecord]:
    return [each.record for each in plan(view).deletions]


def test_merge_when_small_segments_adjoin_then_they_are_merged_oldest_first() -> None:
    merge = plan(GIVEN.view()).merge

    assert merge is not None
    assert bounds(merge) == [(0, 100), (100, 200), (200, 300), (300, 400)]
    assert merge.offsets == OffsetRange(start_offset=0, end_offset=400)
    assert (merge.size_bytes, merge.max_timestamp_ms) == (4000, NOW_MS - HOUR_MS)


def test_merge_when_parts_differ_then_its_newest_timestamp_is_theirs() -> None:
    newest = remote(100, 200, age_ms=5)

    merge = next_merge(of(SMALL[0], newest, *SMALL[2:]))

    assert merge is not None
    assert merge.max_timestamp_ms == NOW_MS - 5


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((1, 1, 1), 0),
        ((1, 1, 1, 1), 4),
        ((2, 1, 1, 1, 1), 0),  # the merge begins after the first segment
        ((3, 3, 3, 2), 0),
        ((3, 3, 3, 2, 1), 5),
        ((10, 10, 10, 10, 160, 160, 160, 160), 8),
        ((1,) * 1000, MERGE_MAX_PARTS),
    ],
)
def test_merge_when_sizes_differ_then_it_is_the_largest_that_grows_enough(
    sizes: tuple[int, ...], expected: int
) -> None:
    merge = next_merge(view_of_sizes(*sizes))

    count = 0 if merge is None or merge.offsets.start_offset else len(merge.parts)
    assert count == expected


def test_merge_when_the_first_segments_are_too_large_then_it_begins_after_them() -> None:
    merge = next_merge(view_of_sizes(9, 9, 1, 1, 1, 1))

    assert bounds(merge) == [(20, 30), (30, 40), (40, 50), (50, 60)]


@pytest.mark.parametrize(
    ("greatest_bytes", "count"), [(16, 0), (17, 17), (39, 39), (40, 40), (41, 40)]
)
def test_merge_when_the_greatest_size_is_reached_then_it_ends(
    greatest_bytes: int, count: int
) -> None:
    merge = next_merge(view_of_sizes(*(1,) * 40, greatest_bytes=greatest_bytes))

    assert len(bounds(merge)) == count


def test_merge_when_offsets_exceed_an_index_then_it_ends_before() -> None:
    wide = [remote(n << 27, (n + 1) << 27) for n in range(9)]

    merge = next_merge(of(*wide, local_start=9 << 27, high_watermark=9 << 27))

    assert merge is not None
    assert len(merge.offsets) == 1 << 30


@pytest.mark.parametrize(("age_ms", "is_old"), [(ROLLOVER_MS, True), (ROLLOVER_MS - 1, False)])
def test_merge_when_a_segment_was_stored_within_the_rollover_time_then_it_waits(
    age_ms: int, is_old: bool
) -> None:
    fresh = replace(SMALL[3], changed_ms=NOW_MS - age_ms)

    merge = next_merge(of(*SMALL[:3], fresh))

    assert (merge is not None) == is_old


@pytest.mark.parametrize(
    "segments",
    [
        (*SMALL[:2], *(remote(n, n + 100) for n in (250, 350))),  # a gap
        (*SMALL[:3], remote(300, 400, state=SegmentState.DELETE_SEGMENT_STARTED)),
        (*SMALL[:3], remote(300, 400, state=SegmentState.COPY_SEGMENT_STARTED)),
        (*SMALL[:3], remote(300, 400, size=0)),
        (*SMALL[:3], remote(300, 400, size=GREATEST_BYTES // SMALL_SHARE)),
        (*SMALL[:3], remote(299, 400)),  # an overlap
        (remote(0, 250, number=5), *SMALL[:3], remote(250, 400)),
    ],
)
def test_merge_when_segments_do_not_adjoin_or_are_not_small_then_there_is_none(
    segments: tuple[SegmentRecord, ...],
) -> None:
    assert next_merge(of(*segments)) is None


def test_merge_when_an_election_cut_off_a_segment_then_it_ends_the_run() -> None:
    lineage = Lineage.of((0, 0), (1, 350))
    found = next_merge(of(*SMALL, stored_lineage=lineage, checkpoint=lineage))

    assert found is None


def test_merge_when_epochs_change_then_parts_of_the_same_lineage_are_merged() -> None:
    lineage = Lineage.of((0, 0), (1, 150))
    parts = [remote(start, start + 100, epochs=lineage) for start in range(0, 400, 100)]

    found = next_merge(of(*parts, stored_lineage=lineage, checkpoint=lineage))

    assert len(bounds(found)) == 4


def test_merge_when_the_log_start_is_in_a_segment_then_that_is_left_out() -> None:
    view = of(*SMALL, remote(400, 500), log_start=50, local_start=500)

    assert bounds(next_merge(view))[0] == (100, 200)


@pytest.mark.parametrize(
    "changes",
    [
        {"limits": replace(LIMITS, merges_streams=False)},
        {"policy": replace(STREAMED, offload_mode=OffloadMode.SEGMENT)},
        {"policy": replace(STREAMED, state=PolicyState.DISABLING)},
        {"high_watermark": 399},
        {"owner": THEM},
        {"checkpoint": Lineage.of((3, 0)), "stored_lineage": Lineage.of((4, 0))},
    ],
)
def test_merge_when_forbidden_then_neither_merged_nor_deleted(changes: dict[str, object]) -> None:
    assert next_merge(of(*SMALL, **changes)) is None
    if "state" not in str(changes):
        assert plan(of(*SMALL, MERGED, **changes)).merge is None


@pytest.mark.parametrize("task", [PausableTask.COPY, PausableTask.DELETE])
def test_merge_when_copies_or_deletions_are_paused_then_there_is_none(task: PausableTask) -> None:
    assert plan(replace(GIVEN.view(), paused=frozenset({task}))).merge is None


def test_merge_when_the_store_is_away_then_there_is_none() -> None:
    assert next_merge(replace(GIVEN.view(), is_store_reachable=False)) is None


def anomaly_of(record: SegmentRecord) -> Anomaly:
    return Anomaly(
        segment=record.metadata.segment_id.id,
        object_key="k",
        kind=AnomalyKind.MISSING,
        first_ms=1,
        last_ms=1,
        attempts=1,
    )


def test_merge_when_a_part_is_damaged_or_reported_then_there_is_none() -> None:
    damaged = Damage(damaged=frozenset({SMALL[2].metadata.segment_id.id}))

    assert next_merge(replace(GIVEN.view(), damage=damaged)) is None
    assert next_merge(of(*SMALL, anomalies=(anomaly_of(SMALL[2]),))) is None


@pytest.mark.parametrize(
    ("changes", "has_merge"),
    [
        ({"retention_ms": 30 * RETENTION_SHARES}, True),
        ({"retention_ms": 30 * RETENTION_SHARES - 1}, False),
    ],
)
def test_merge_when_it_would_have_too_much_of_the_retention_then_there_is_none(
    changes: dict[str, object], has_merge: bool
) -> None:
    parts = [remote(n * 100, n * 100 + 100, age_ms=40 - n * 10) for n in range(4)]

    merge = next_merge(of(*parts, policy=replace(STREAMED, **changes)))  # type: ignore[arg-type]  # field names

    assert (merge is not None) == has_merge


@pytest.mark.parametrize(("share_bytes", "count"), [(17_000, 17), (16_999, 16), (16_000, 0)])
def test_merge_when_the_retention_is_in_bytes_then_it_has_at_most_a_share_of_them(
    share_bytes: int, count: int
) -> None:
    parts = [remote(n * 10, n * 10 + 10, size=1000) for n in range(17)]
    limited = replace(STREAMED, retention_bytes=share_bytes * RETENTION_SHARES)

    merge = next_merge(of(*parts, policy=limited))

    assert len(bounds(merge)) == count


def test_merges_when_many_segments_wait_then_each_is_in_one_merge() -> None:
    view = view_of_sizes(*(1,) * (MERGE_MAX_PARTS + 4), 9, *(1,) * 3, 2_000_000, *(1,) * 4)

    waiting = waiting_merges(view)

    assert [len(merge.parts) for merge in waiting] == [MERGE_MAX_PARTS, 4, 4]
    assert next_merge(view) == waiting[0]


def test_merges_when_paused_then_they_wait() -> None:
    view = replace(GIVEN.view(), paused=frozenset({PausableTask.DELETE}))

    decided = plan(view)

    assert decided.merge is None
    assert [bounds(merge) for merge in decided.waiting_merges] == [bounds(next_merge(GIVEN.view()))]


def test_merges_when_off_then_none_waits() -> None:
    assert waiting_merges(of(*SMALL, limits=replace(LIMITS, merges_streams=False))) == ()


def test_parts_when_the_merged_segment_is_finished_then_they_are_deleted_after_a_proof() -> None:
    view = of(MERGED, *SMALL)

    deletions = plan(view).deletions

    assert [each.record for each in deletions] == list(SMALL)
    assert {each.replaced_by for each in deletions} == {(MERGED.metadata.segment_id,)}
    assert not any(each.is_damaged for each in deletions)
    assert next_merge(view) is None


@pytest.mark.parametrize(
    "state", [SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED]
)
def test_parts_when_the_merged_segment_is_not_finished_then_they_stay(state: SegmentState) -> None:
    unfinished = remote(0, 400, size=4000, state=state)

    assert replaced(of(unfinished, *SMALL)) == []


def test_parts_when_the_merged_segment_is_damaged_then_they_stay() -> None:
    damaged = Damage(damaged=frozenset({MERGED.metadata.segment_id.id}))

    assert replaced(replace(of(MERGED, *SMALL), damage=damaged)) == []
    assert replaced(of(MERGED, *SMALL, anomalies=(anomaly_of(MERGED),))) == []


def test_parts_when_an_election_cut_off_the_merged_segment_then_they_stay() -> None:
    lineage = Lineage.of((0, 0), (1, 390))

    assert replaced(of(MERGED, *SMALL, stored_lineage=lineage, checkpoint=lineage)) == []


def test_parts_when_only_partly_in_the_merged_segment_then_they_stay() -> None:
    outside = remote(350, 450, number=1)

    assert replaced(of(MERGED, outside)) == []


def test_parts_when_two_leaders_merged_them_then_one_of_the_merged_segments_stays() -> None:
    again = remote(0, 400, size=4000, number=1)

    assert replaced(of(MERGED, again, *SMALL)) == [again, *SMALL]


@pytest.mark.parametrize(
    "changes",
    [
        {"limits": replace(LIMITS, merges_streams=False)},
        {"policy": replace(STREAMED, offload_mode=OffloadMode.SEGMENT)},
        {"high_watermark": 399},
        {"owner": THEM},
    ],
)
def test_parts_when_merges_are_off_or_the_history_is_in_doubt_then_they_stay(
    changes: dict[str, object],
) -> None:
    assert deleted(of(MERGED, *SMALL, **changes)) == []


def test_parts_when_a_lease_has_their_offsets_then_they_stay_until_it_ends() -> None:
    lease = ReadLease(
        lease_id=MERGED.metadata.segment_id.id,
        holder="job",
        offsets=OffsetRange(start_offset=100, end_offset=101),
        expires_ms=NOW_MS + 1,
    )
    assert deleted(of(MERGED, *SMALL, read_leases=(lease,))) == [
        SMALL[0],
        *SMALL[2:],
    ]


def test_parts_when_below_the_log_start_too_then_each_is_deleted_once() -> None:
    view = of(MERGED, *SMALL, log_start=200)

    found = deleted(view)

    assert sorted(str(each.metadata.offsets) for each in found) == [
        str(each.metadata.offsets) for each in SMALL
    ]
    assert len(found) == len(SMALL)


def merged_with_a_part(base_offset: int, **part: object) -> list[SegmentRecord]:
    left = remote(base_offset + 100, base_offset + 200, **part)  # type: ignore[arg-type]  # its fields
    return [remote(base_offset, base_offset + 400, size=GREATEST_BYTES), left]


@pytest.mark.parametrize("is_dead_lettered", [False, True])
@pytest.mark.parametrize("state", [FINISHED, SegmentState.DELETE_SEGMENT_STARTED])
@pytest.mark.parametrize("count", [MERGES_LEFT_MAX - 1, MERGES_LEFT_MAX])
def test_merge_when_parts_of_earlier_ones_are_left_then_only_a_few_others_are_merged(
    count: int, state: SegmentState, *, is_dead_lettered: bool
) -> None:
    earlier = [
        record
        for number in range(count)
        for record in merged_with_a_part(
            number * 400, state=state, is_dead_lettered=is_dead_lettered
        )
    ]
    later = [remote(start, start + 100) for start in range(1600, 2000, 100)]

    merge = next_merge(of(*earlier, *later, local_start=2000, high_watermark=2000))

    is_deleted = is_dead_lettered and state is not FINISHED
    has_merge = count < MERGES_LEFT_MAX or is_deleted
    assert len(bounds(merge)) == (4 if has_merge else 0)


@pytest.mark.parametrize("state", [FINISHED, SegmentState.DELETE_SEGMENT_STARTED])
def test_merge_when_a_merged_segment_has_parts_left_then_it_is_not_merged_itself(
    state: SegmentState,
) -> None:
    left = remote(0, 50, state=state)

    merge = next_merge(of(left, *SMALL, remote(400, 500), local_start=500))

    assert bounds(merge) == [(100, 200), (200, 300), (300, 400), (400, 500)]


def test_sizes_when_the_parts_are_not_deleted_yet_then_they_count_once() -> None:
    pieces = log_pieces(of(MERGED, *SMALL))

    assert sum(piece.size_bytes for piece in pieces) == 4000
    assert sum(piece.size_bytes for piece in log_pieces(of(*SMALL))) == 4000


def merge_all(sizes: list[int], greatest_bytes: int) -> tuple[list[int], int]:
    """Merge until nothing is left to merge; return the sizes, and how often a byte was copied.

    Each segment has as many offsets as bytes.
    """
    copies = [0] * sum(sizes)
    segments = list(pairwise(accumulate(sizes, initial=0)))
    streamed = replace(STREAMED, offload_segment_max_bytes=greatest_bytes)
    end = segments[-1][1]
    while True:
        records = [remote(start, stop, size=stop - start) for start, stop in segments]
        given_now = replace(
            GIVEN, segments=tuple(records), policy=streamed, local_start=end, high_watermark=end
        )
        merge = next_merge(given_now.view())
        if merge is None:
            return [stop - start for start, stop in segments], _most(sizes, copies, greatest_bytes)
        start, stop = merge.offsets.start_offset, merge.offsets.end_offset
        assert merge.size_bytes == stop - start <= greatest_bytes
        for offset in range(start, stop):
            copies[offset] += 1
        kept = [each for each in segments if not start <= each[0] < stop]
        segments = sorted([*kept, (start, stop)])


def _most(sizes: list[int], copies: list[int], greatest_bytes: int) -> int:
    """Check the bound of each byte; return the highest number of copies."""
    for size, (start, stop) in zip(sizes, pairwise(accumulate(sizes, initial=0)), strict=True):
        bound = 0
        while size * MERGE_GROWTH**bound * SMALL_SHARE < greatest_bytes:
            bound += 1
        assert max(copies[start:stop]) <= bound
    return max(copies)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1_024, 2_000))
def test_merges_when_repeated_to_the_end_then_each_byte_is_copied_a_bounded_number_of_times(
    sizes: list[int], greatest_bytes: int
) -> None:
    left, _ = merge_all(sizes, greatest_bytes)

    assert sum(left) == sum(sizes)


@pytest.mark.parametrize("count", [63, 64, 256, 300])
def test_merges_when_all_sizes_are_equal_then_few_segments_are_left(count: int) -> None:
    left, most = merge_all([4] * count, 1_024)

    assert len(left) <= -(-4 * count // 512) + 2 * MERGE_GROWTH
    assert most <= 4


def test_deletion_when_planned_then_its_rule_names_the_merge() -> None:
    (first, *_) = plan(of(MERGED, *SMALL)).deletions

    assert isinstance(first, DeleteSegment)
    assert first.reason == "merged: another segment contains the records"


def test_offsets_when_the_broker_has_lost_stored_records_then_nothing_is_deleted() -> None:
    lost = PartitionOffsets(log_start_offset=0, last_stable_offset=10, high_watermark=10)

    assert deleted(replace(of(MERGED, *SMALL), offsets=lost)) == []
