"""Which damaged segments are copied again, and which may be deleted."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.facts.local_log import CommittedTail
from rlm.policy.candidates import copy_candidates
from rlm.policy.gaps import gaps_of_losses
from rlm.policy.plan import Plan, plan
from rlm.policy.repair import (
    DAMAGED_AGAIN_PAUSE_MS,
    MAX_DAMAGED_COPIES,
    Repair,
    accepted_losses,
    find_repair,
    lost_segments,
    replaced_segments,
)
from rlm.policy.view import Damage, PartitionView
from rlmm.events.pause import PausableTask
from rlmm.spi import SegmentRecord
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.gaps import GapReason, RecordedGap
from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import anomaly, gap
from tests.unit.rlm.policy.views import NOW_MS, Given, local, remote, stored_up_to

STORED = stored_up_to(500)
LOST = STORED[2]
AGAIN = remote(200, 300, number=1)


def ids(*records: SegmentRecord) -> frozenset[UUID]:
    return frozenset(record.metadata.segment_id.id for record in records)


def view_of(
    *damaged: SegmentRecord, given: Given | None = None, whole: tuple[SegmentRecord, ...] = ()
) -> PartitionView:
    view = (given or Given(segments=STORED)).view()
    return replace(view, damage=Damage(damaged=ids(*damaged), whole=ids(*whole)))


def pieces(repair: Repair) -> list[tuple[int, int, int | None]]:
    return [
        (
            each.offsets.start_offset,
            each.offsets.end_offset,
            None if each.is_whole_file else each.file_base_offset,
        )
        for each in repair.segments
    ]


def test_repair_when_the_broker_has_the_file_then_it_is_copied_whole() -> None:
    repair = find_repair(view_of(LOST))

    assert pieces(repair) == [(200, 300, None)]
    assert repair.replaces == ids(LOST)


def test_repair_when_nothing_is_damaged_then_nothing_is_copied_again() -> None:
    assert find_repair(view_of()) == Repair()


def test_repair_when_another_segment_holds_the_range_then_nothing_is_copied() -> None:
    given = Given(segments=(*STORED, AGAIN))

    assert find_repair(view_of(LOST, given=given)) == Repair()


@pytest.mark.parametrize("local_start", [300, 400])
def test_repair_when_the_broker_has_trimmed_the_range_then_nothing_is_copied(
    local_start: int,
) -> None:
    """The broker may keep the file for a while."""
    given = Given(segments=STORED, local_start=local_start)

    assert find_repair(view_of(LOST, given=given)) == Repair()


def test_repair_when_the_log_begins_inside_the_range_then_the_file_is_copied() -> None:
    """The copier omits the records that the broker has deleted."""
    given = Given(segments=STORED, local_start=250)

    assert pieces(find_repair(view_of(LOST, given=given))) == [(200, 300, None)]


def test_repair_when_local_bounds_are_others_then_every_file_from_the_first_lost_offset() -> None:
    """A former leader rolled its segments at other offsets."""
    files = (local(0, 150), local(150, 270), local(270, 420), local(420, 600))
    given = Given(segments=STORED, rolled=files)

    repair = find_repair(view_of(LOST, given=given))

    assert pieces(repair) == [(200, 270, 150), (270, 420, None)]
    assert repair.replaces == ids(*STORED[2:])


def test_repair_when_several_ranges_are_in_one_file_then_copied_from_the_lowest_on() -> None:
    given = Given(segments=STORED, rolled=(local(0, 150), local(150, 450), local(450, 600)))

    assert pieces(find_repair(view_of(LOST, STORED[3], given=given))) == [(200, 450, 150)]


@pytest.mark.parametrize(("stable_end", "copied"), [(499, []), (500, [(400, 500, None)])])
def test_repair_when_the_file_may_still_be_rolled_back_then_waits(
    stable_end: int, copied: list[tuple[int, int, int | None]]
) -> None:
    given = Given(segments=STORED, last_stable_offset=stable_end)

    assert pieces(find_repair(view_of(STORED[4], given=given))) == copied


def test_repair_when_no_log_start_is_on_record_then_copied_from_the_first_offset_on() -> None:
    given = Given(segments=STORED, log_start=None)

    assert pieces(find_repair(view_of(STORED[0], given=given))) == [(0, 100, None)]


def test_repair_when_the_range_ends_where_the_active_file_begins_then_that_is_not_copied() -> None:
    stored = stored_up_to(1000)

    repair = find_repair(view_of(stored[-1], given=Given(segments=stored)))

    assert pieces(repair) == [(900, 1000, None)]


def test_repair_when_the_range_begins_below_the_active_file_then_both_files_are_copied() -> None:
    """A former leader rolled its segments at other offsets."""
    across = remote(950, 1050)
    given = Given(segments=(*stored_up_to(900), remote(900, 950), across))

    repair = find_repair(view_of(across, given=given))

    assert pieces(repair) == [(950, 1000, 900), (1000, 1050, 1000)]


def test_repair_when_the_range_is_in_the_active_file_then_that_part_is_copied() -> None:
    """Like a copy of an idle partition."""
    idle = remote(1000, 1050)
    repair = find_repair(view_of(idle, given=Given(segments=(*stored_up_to(1000), idle))))

    assert pieces(repair) == [(1000, 1050, 1000)]
    assert isinstance(repair.segments[0], CommittedTail)


def test_repair_when_every_copy_was_damaged_then_the_next_one_is_made_after_an_hour() -> None:
    """The store is not filled with bad copies, and no loss has to be accepted."""
    again = tuple(
        remote(200, 300, number=n, changed_ms=NOW_MS - 1) for n in range(1, MAX_DAMAGED_COPIES + 1)
    )
    fewer = again[:-1]
    given = Given(segments=(*STORED, *again))
    later = replace(given, broker_ms=NOW_MS - 1 + DAMAGED_AGAIN_PAUSE_MS)
    too_early = replace(given, broker_ms=NOW_MS - 2 + DAMAGED_AGAIN_PAUSE_MS)

    last = find_repair(view_of(LOST, *fewer, given=Given(segments=(*STORED, *fewer))))

    assert pieces(last) == [(200, 300, None)]
    assert find_repair(view_of(LOST, *again, given=too_early)) == Repair()
    assert pieces(find_repair(view_of(LOST, *again, given=later))) == [(200, 300, None)]


def test_repair_when_other_offsets_were_damaged_often_then_is_not_paused() -> None:
    elsewhere = tuple(
        remote(100, 200, number=n, changed_ms=NOW_MS) for n in range(1, MAX_DAMAGED_COPIES + 1)
    )
    given = Given(segments=(*STORED, *elsewhere))

    repair = find_repair(view_of(LOST, STORED[1], *elsewhere, given=given))

    assert pieces(repair) == [(200, 300, None)]


def test_repair_when_damaged_in_the_moment_that_it_was_stored_then_copied_at_once() -> None:
    damaged = remote(200, 300, changed_ms=NOW_MS)
    given = Given(segments=(*STORED[:2], damaged))

    assert pieces(find_repair(view_of(damaged, given=given))) == [(200, 300, None)]


def test_repair_when_copies_are_paused_then_waits() -> None:
    view = replace(view_of(LOST), paused=frozenset({PausableTask.COPY}))

    assert find_repair(view) == Repair()


def test_repair_when_below_the_log_start_then_nothing_is_copied() -> None:
    given = Given(segments=STORED, log_start=300)

    assert find_repair(view_of(LOST, given=given)) == Repair()


def test_plan_when_a_segment_is_damaged_then_new_ones_are_copied_as_before() -> None:
    view = view_of(LOST)

    planned = plan(view)

    assert planned.copies == copy_candidates(view)
    assert [each.offsets.start_offset for each in planned.copies] == [500, 600, 700, 800, 900]
    assert planned.deletions == ()


def test_deletion_when_the_copy_was_found_whole_then_the_damaged_one_is_deleted() -> None:
    """The action names the segments that have its records, and no others."""
    given = Given(segments=(*STORED, AGAIN))

    planned = plan(view_of(LOST, given=given, whole=(AGAIN, STORED[1], STORED[3])))

    assert [each.record for each in planned.deletions] == [LOST]
    assert planned.deletions[0].replaced_by == (AGAIN.metadata.segment_id,)


@pytest.mark.parametrize(
    "damaged_and_whole",
    [
        pytest.param(((LOST,), ()), id="nobody has looked at the other one"),
        pytest.param(((LOST, AGAIN), ()), id="both are damaged"),
        pytest.param(((), (AGAIN,)), id="nothing is damaged"),
    ],
)
def test_deletion_when_not_proven_then_nothing_is_deleted(
    damaged_and_whole: tuple[tuple[SegmentRecord, ...], tuple[SegmentRecord, ...]],
) -> None:
    damaged, whole = damaged_and_whole
    view = view_of(*damaged, given=Given(segments=(*STORED, AGAIN)), whole=whole)

    assert replaced_segments(view) == ()


def test_deletion_when_the_other_one_has_only_a_part_then_nothing_is_deleted() -> None:
    half = remote(200, 299, number=1)
    view = view_of(LOST, given=Given(segments=(*STORED, half)), whole=(half,))

    assert replaced_segments(view) == ()


def test_deletion_when_the_other_one_was_cut_off_by_an_election_then_nothing_is_deleted() -> None:
    """Only segments of the log's lineage have records of the log."""
    elsewhere = remote(200, 300, number=1, epochs=Lineage.of((3, 0)))
    view = view_of(LOST, given=Given(segments=(*STORED, elsewhere)), whole=(elsewhere,))

    assert replaced_segments(view) == ()


def test_deletion_when_wholly_below_the_log_start_then_planned_once() -> None:
    """Segments below the log start are deleted anyway, damaged or not."""
    given = Given(segments=STORED, log_start=300, local_start=300)

    planned = plan(view_of(LOST, given=given))

    assert [each.record for each in planned.deletions] == list(STORED[:3])
    assert not any(each.is_damaged for each in planned.deletions)


def test_deletion_when_the_partition_has_diverged_then_nothing_is_deleted() -> None:
    given = Given(segments=(*STORED, AGAIN), high_watermark=450)

    assert replaced_segments(view_of(LOST, given=given, whole=(AGAIN,))) == ()


def test_deletion_when_paused_then_waits() -> None:
    view = view_of(LOST, given=Given(segments=(*STORED, AGAIN)), whole=(AGAIN,))

    planned = plan(replace(view, paused=frozenset({PausableTask.DELETE})))

    assert planned.deletions == ()


def given_up(
    *,
    local_start: int = 400,
    gaps: tuple[RecordedGap, ...] = (),
    damaged: tuple[SegmentRecord, ...] = (LOST,),
    lost: tuple[OffsetRange, ...] = (LOST.metadata.offsets,),
    others: tuple[Anomaly, ...] = (),
) -> PartitionView:
    """Return a view: the operator accepted the loss of LOST, which the broker does not have."""
    accepted = anomaly(kind=AnomalyKind.LOSS_ACCEPTED)
    accepted = replace(accepted, segment=LOST.metadata.segment_id.id, lost=lost)
    given = Given(
        segments=STORED,
        local_start=local_start,
        trimmed=local_start,
        anomalies=(accepted, *others),
    )
    view = view_of(*damaged, given=given)
    return replace(view, state=replace(view.state, recorded_gaps=gaps, gaps_epoch=9))


def lost_by(planned: Plan) -> list[tuple[int, int]]:
    return [
        (offsets.start_offset, offsets.end_offset)
        for each in planned.losses
        for offsets in each.offsets
    ]


def test_plan_when_the_loss_was_accepted_then_records_the_gap_first() -> None:
    view = given_up()
    planned = plan(view)

    gaps = gaps_of_losses(view, planned.losses)

    assert gaps is not None
    assert [(g.offsets.start_offset, g.offsets.end_offset, g.reason) for g in gaps] == [
        (200, 300, GapReason.ACCEPTED_LOSS)
    ]
    assert (planned.gaps, planned.deletions) == (None, ())


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        pytest.param([(200, 250)], [(200, 250)], id="other segments held the rest then"),
        pytest.param([(150, 210), (290, 350)], [(200, 210), (290, 300)], id="of no other segment"),
        pytest.param([(100, 200), (200, 250), (350, 400)], [(200, 250)], id="some is there again"),
        pytest.param([], [], id="a record without offsets"),
    ],
)
def test_plan_when_more_is_lost_than_was_accepted_then_only_what_was_is_given_up(
    accepted: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    lost = tuple(OffsetRange(start_offset=start, end_offset=end) for start, end in accepted)

    planned = plan(given_up(lost=lost))

    assert lost_by(planned) == expected
    assert planned.deletions == ()


def test_plan_when_another_segments_loss_was_accepted_then_says_nothing_of_this_one() -> None:
    other = replace(
        anomaly(kind=AnomalyKind.LOSS_ACCEPTED),
        segment=AGAIN.metadata.segment_id.id,
        lost=(OffsetRange(start_offset=250, end_offset=300),),
    )
    lost = (OffsetRange(start_offset=200, end_offset=250),)

    assert lost_by(plan(given_up(lost=lost, others=(other,)))) == [(200, 250)]


def test_plan_when_the_log_begins_right_after_the_lost_offsets_then_they_are_given_up() -> None:
    assert lost_by(plan(given_up(local_start=300))) == [(200, 300)]


@pytest.mark.parametrize("is_parted", [False, True])
def test_losses_when_the_log_has_lost_data_or_parted_then_nothing_is_given_up(
    *, is_parted: bool
) -> None:
    """An operator decides first which log counts."""
    gaps = (gap(200, 300, reason=GapReason.ACCEPTED_LOSS),)
    unrecorded, recorded = (
        _parted(view) if is_parted else _diverged(view)
        for view in (given_up(), given_up(gaps=gaps))
    )

    assert accepted_losses(given_up()) != ()
    assert lost_segments(given_up(gaps=gaps)) != ()
    assert accepted_losses(unrecorded) == ()
    assert lost_segments(recorded) == ()


def _diverged(view: PartitionView) -> PartitionView:
    """Return a view in which the broker's log ends below the stored end."""
    return replace(view, offsets=replace(view.offsets, high_watermark=450))


def _parted(view: PartitionView) -> PartitionView:
    """Return a view in which the checkpoint contradicts the stored lineage above the stored end."""
    state = replace(view.state, lineage=Lineage.of((0, 0), (2, 700)))
    local_log = replace(view.local, checkpoint=Lineage.of((1, 600)))
    parted = replace(view, state=state, local=local_log)
    assert (parted.conflict_offset, parted.is_diverged) == (600, False)
    return parted


def test_plan_when_the_gap_is_on_record_then_the_segment_is_deleted() -> None:
    planned = plan(given_up(gaps=(gap(200, 300, reason=GapReason.ACCEPTED_LOSS),)))

    assert planned.losses == ()
    assert [(each.record, each.is_damaged) for each in planned.deletions] == [(LOST, True)]


def test_plan_when_a_given_up_segment_was_replaced_after_all_then_it_is_deleted_once() -> None:
    view = given_up(gaps=(gap(200, 300, reason=GapReason.ACCEPTED_LOSS),))
    damage = Damage(damaged=ids(LOST), whole=ids(AGAIN))

    planned = plan(replace(view, segments=(*STORED, AGAIN), damage=damage))

    assert [(each.record, each.replaced_by) for each in planned.deletions] == [
        (LOST, (AGAIN.metadata.segment_id,))
    ]


def test_plan_when_the_gap_holds_only_a_part_then_the_segment_stays() -> None:
    planned = plan(given_up(gaps=(gap(200, 250, reason=GapReason.ACCEPTED_LOSS),)))

    assert lost_by(planned) == [(250, 300)]
    assert planned.deletions == ()


@pytest.mark.parametrize("local_start", [0, 200, 250, 299])
def test_plan_when_the_broker_has_some_of_it_then_nothing_is_given_up(local_start: int) -> None:
    planned = plan(given_up(local_start=local_start))

    assert (planned.losses, planned.deletions) == ((), ())


def test_plan_when_the_manager_found_the_objects_whole_then_nothing_is_given_up() -> None:
    gaps = (gap(200, 300, reason=GapReason.ACCEPTED_LOSS),)
    planned = plan(given_up(gaps=gaps, damaged=()))

    assert (planned.losses, planned.deletions) == ((), ())


@pytest.mark.parametrize(
    "anomalies",
    [
        pytest.param((), id="nobody said anything of the segment"),
        pytest.param((anomaly(LOST.metadata.segment_id.id.int),), id="a reader missed it"),
    ],
)
def test_plan_when_the_gap_is_of_something_else_then_a_damaged_segment_stays(
    anomalies: tuple[Anomaly, ...],
) -> None:
    """Readers get stored records even within a gap."""
    view = given_up(gaps=(gap(200, 300),))
    view = replace(view, state=replace(view.state, anomalies=anomalies))

    assert plan(view).deletions == ()
