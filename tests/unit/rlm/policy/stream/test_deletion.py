"""Which streamed segments an operator's request deletes, and what is copied first."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.facts.local_log import CommittedTail
from rlm.policy.plan import DeleteSegment, plan
from rlm.policy.stream.deletion import find_replacement, replaced_streamed, streamed_segments
from rlm.policy.view import Damage, PartitionView
from rlmm.events.pause import PausableTask
from rlmm.events.policy import PolicyState
from rlmm.spi import SegmentRecord
from rlmm.state.partition_state import ReadLease
from rsm.segment.coverage import StoredRange, stored_ranges
from rsm.segment.epochs import Lineage
from rsm.segment.offload_settings import OffloadMode
from rsm.segment.ranges import OffsetRange
from tests.unit.rlm.policy.views import LINEAGE, NOW_MS, POLICY, Given, local, remote

KEEP_LOCAL = replace(POLICY, local_retention_ms=-1)
FIRST, SECOND = remote(0, 250, number=7), remote(250, 400, number=7)
STREAM = (FIRST, SECOND)
COPIES = (remote(0, 100), remote(100, 200), remote(200, 300), remote(300, 400))
GIVEN = Given(policy=KEEP_LOCAL, segments=STREAM)


def ids(*records: SegmentRecord) -> frozenset[UUID]:
    return frozenset(record.metadata.segment_id.id for record in records)


def view_of(given: Given = GIVEN, *requested: SegmentRecord) -> PartitionView:
    return replace(given.view(), deletion_requested=ids(*(requested or STREAM)))


def stored(*records: SegmentRecord, lineage: Lineage = LINEAGE) -> tuple[StoredRange, ...]:
    return stored_ranges(lineage, (record.metadata for record in records))


def offsets(*pairs: tuple[int, int]) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange(start_offset=start, end_offset=end) for start, end in pairs)


def copied(view: PartitionView) -> list[tuple[int, int]]:
    return [
        (each.offsets.start_offset, each.offsets.end_offset)
        for each in find_replacement(view).segments
    ]


def deleted(view: PartitionView) -> list[SegmentRecord]:
    return [each.record for each in plan(view).deletions]


@pytest.mark.parametrize(
    ("local_start", "log_start", "to_copy", "only_here"),
    [
        (0, 0, [(0, 200), (300, 400)], []),
        (150, 0, [(0, 200), (300, 400)], [(0, 150)]),
        (200, 0, [(0, 200), (300, 400)], [(0, 200)]),
        (400, 0, [(0, 200), (300, 400)], [(0, 200), (300, 400)]),
        (150, 150, [(150, 200), (300, 400)], []),
        (400, 399, [(399, 400)], [(399, 400)]),
    ],
)
def test_segments_when_others_have_a_part_then_the_rest_is_to_copy_or_only_here(
    local_start: int,
    log_start: int,
    to_copy: list[tuple[int, int]],
    only_here: list[tuple[int, int]],
) -> None:
    whole, other = remote(0, 400, number=7), COPIES[2]

    (found,) = streamed_segments(
        ids(whole),
        stored(whole, other),
        (),
        log_start_offset=log_start,
        local_start_offset=local_start,
    )

    assert found.metadata == whole.metadata
    assert found.to_copy == offsets(*to_copy)
    assert found.only_here == offsets(*only_here)
    overlapping = (other.metadata.segment_id,) if log_start < 300 else ()
    assert found.replaced_by == overlapping


def test_segments_when_another_streamed_or_damaged_one_overlaps_then_it_is_no_copy() -> None:
    again, broken = remote(0, 250, number=8), remote(0, 250, number=9)

    found = streamed_segments(
        ids(FIRST, again),
        stored(FIRST, again, broken),
        ids(broken),
        log_start_offset=0,
        local_start_offset=250,
    )

    assert [each.only_here for each in found] == [offsets((0, 250))] * 2


def test_segments_when_an_election_cut_off_the_end_then_that_end_is_nowhere_else() -> None:
    """The log has other records at these offsets, and so does the copy."""
    lineage = Lineage.of((0, 0), (1, 200))
    again = remote(200, 300, number=1, epochs=Lineage.of((1, 200)))

    (found,) = streamed_segments(
        ids(FIRST),
        stored(FIRST, *COPIES[:2], again, lineage=lineage),
        (),
        log_start_offset=0,
        local_start_offset=0,
    )

    assert (found.to_copy, found.only_here) == ((), offsets((200, 250)))


def test_request_when_the_log_starts_above_a_segment_then_it_is_left_to_retention() -> None:
    """The log start of the partition's state counts, not only that of the broker's log."""
    assert copied(view_of()) == [(0, 100), (100, 200), (200, 300), (300, 400)]
    assert copied(view_of(replace(GIVEN, log_start=250))) == [(250, 300), (300, 400)]


@pytest.mark.parametrize("log_start", [250, 251])
def test_segments_when_below_the_log_start_then_left_to_retention(log_start: int) -> None:
    found = streamed_segments(
        ids(*STREAM), stored(*STREAM), (), log_start_offset=log_start, local_start_offset=0
    )

    assert [each.metadata for each in found] == [SECOND.metadata]


def test_plan_when_only_the_broker_has_the_records_then_copies_and_deletes_nothing() -> None:
    view = view_of()

    planned = plan(view)

    assert copied(view) == [(0, 100), (100, 200), (200, 300), (300, 400)]
    assert planned.repair == find_replacement(view)
    assert planned.repair.replaces == ids(*STREAM)
    assert planned.deletions == ()


def test_plan_when_a_part_was_copied_then_copies_only_the_rest() -> None:
    assert copied(view_of(replace(GIVEN, segments=(*STREAM, *COPIES[:2])))) == [
        (200, 300),
        (300, 400),
    ]


def test_plan_when_the_stream_reaches_into_the_active_segment_then_copies_that_part() -> None:
    tail = remote(1000, 1030, number=7)
    view = view_of(replace(GIVEN, segments=(tail,)), tail)

    (found,) = find_replacement(view).segments

    assert isinstance(found, CommittedTail)
    assert (found.file_base_offset, found.offsets) == (1000, tail.metadata.offsets)


def test_plan_when_other_segments_have_all_records_then_deletes_with_their_names() -> None:
    view = view_of(replace(GIVEN, segments=(*STREAM, *COPIES)))

    planned = plan(view)

    names = [each.metadata.segment_id for each in COPIES]
    reason = "streamed: an operator requested the deletion, and other segments contain the records"
    assert planned.repair.segments == ()
    assert planned.deletions == (
        DeleteSegment(record=FIRST, reason=reason, replaced_by=tuple(names[:3])),
        DeleteSegment(record=SECOND, reason=reason, replaced_by=tuple(names[2:])),
    )


def test_plan_when_one_record_is_missing_then_only_the_other_segment_is_deleted() -> None:
    short = (*COPIES[:3], remote(300, 399))

    assert deleted(view_of(replace(GIVEN, segments=(*STREAM, *short)))) == [FIRST]


def test_plan_when_a_segment_is_the_only_copy_then_nothing_of_it_is_copied_or_deleted() -> None:
    given = replace(GIVEN, rolled=tuple(local(n, n + 100) for n in range(100, 1000, 100)))
    view = view_of(replace(given, local_start=100, trimmed=100))

    assert copied(view) == [(250, 300), (300, 400)]
    assert deleted(view) == []


def test_plan_when_not_requested_then_streamed_segments_stay() -> None:
    view = replace(GIVEN, segments=(*STREAM, *COPIES)).view()

    assert (plan(view).deletions, plan(view).repair.segments) == ((), ())
    assert deleted(view_of(replace(GIVEN, segments=(*STREAM, *COPIES)), FIRST)) == [FIRST]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(
            replace(GIVEN, policy=replace(KEEP_LOCAL, offload_mode=OffloadMode.STREAM)),
            id="streamed again",
        ),
        pytest.param(
            replace(GIVEN, policy=replace(KEEP_LOCAL, state=PolicyState.ENABLING)),
            id="not active",
        ),
        pytest.param(replace(GIVEN, high_watermark=350), id="the log has lost stored records"),
        pytest.param(
            replace(
                GIVEN,
                stored_lineage=Lineage.of((0, 0), (2, 700)),
                checkpoint=Lineage.of((1, 600)),
            ),
            id="two histories",
        ),
    ],
)
def test_plan_when_the_partition_does_not_permit_it_then_nothing_happens(given: Given) -> None:
    before, after = view_of(given), view_of(replace(given, segments=(*STREAM, *COPIES)))

    assert copied(before) == []
    assert replaced_streamed(after) == ()


def test_plan_when_tiering_ends_then_a_request_still_counts() -> None:
    policy = replace(KEEP_LOCAL, state=PolicyState.DISABLING)
    given = replace(GIVEN, policy=policy, segments=(*STREAM, *COPIES))

    assert deleted(view_of(given)) == list(STREAM)


def test_plan_when_copies_are_paused_then_deletes_what_is_replaced_and_copies_nothing() -> None:
    view = view_of(replace(GIVEN, segments=(*STREAM, *COPIES[:3])))
    paused = replace(view, paused=frozenset({PausableTask.COPY}))

    assert (copied(paused), deleted(paused)) == ([], [FIRST])


def test_plan_when_deletions_are_paused_then_nothing_is_copied_for_them() -> None:
    paused = replace(view_of(), paused=frozenset({PausableTask.DELETE}))

    assert (plan(paused).repair.segments, plan(paused).deletions) == ((), ())


def test_plan_when_a_reader_has_a_lease_then_the_segment_stays() -> None:
    lease = ReadLease(
        lease_id=UUID(int=1),
        offsets=OffsetRange(start_offset=300, end_offset=310),
        expires_ms=NOW_MS + 1,
        holder="job",
    )
    view = view_of(replace(GIVEN, segments=(*STREAM, *COPIES), read_leases=(lease,)))

    assert deleted(view) == [FIRST]


def test_plan_when_a_copy_is_damaged_then_its_repair_comes_first() -> None:
    """A store that damages every object is not filled with copies."""
    given = replace(GIVEN, segments=(*STREAM, *COPIES))
    view = replace(view_of(given), damage=Damage(damaged=ids(COPIES[3])))

    assert copied(view) == []
    assert deleted(view) == [FIRST]


def test_plan_when_the_streamed_segment_is_damaged_then_repairs_delete_it_once() -> None:
    given = replace(GIVEN, segments=(*STREAM, *COPIES))
    damage = Damage(damaged=ids(FIRST), whole=ids(*COPIES))

    planned = plan(replace(view_of(given), damage=damage))

    assert [(each.record, each.is_damaged) for each in planned.deletions] == [
        (FIRST, True),
        (SECOND, False),
    ]


def test_plan_when_something_is_damaged_and_requested_then_damage_is_repaired_first() -> None:
    broken = remote(500, 600)
    view = view_of(replace(GIVEN, segments=(*STREAM, broken)))

    planned = plan(replace(view, damage=Damage(damaged=ids(broken))))

    assert [each.offsets for each in planned.repair.segments] == list(offsets((500, 600)))
