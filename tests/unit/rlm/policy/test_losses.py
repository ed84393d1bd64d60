"""The losses of a log: when they block its work, and when they are accepted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.candidates import copy_candidates
from rlm.policy.losses import losses
from rlm.policy.plan import plan
from rlm.policy.view import PartitionView, PolicyLimits
from rlmm.state.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState
from tests.metadata_builder import log_starts
from tests.unit.rlm.policy.views import HOUR_MS, NOW_MS, Given, local, policy, remote

OLD = Lineage.of((0, 0), (1, 200))
# Epoch 3 began at 250: the records of epoch 1 from there on are no longer in the log.
LOG = Lineage.of((0, 0), (1, 200), (3, 250))
HOLDING = PolicyLimits(
    local_trim_min_age_ms=0, should_hold_after_loss=True, unreferenced_grace_ms=24 * HOUR_MS
)
STORED = tuple(remote(s, s + 100, epochs=OLD, changed_ms=1) for s in range(0, 400, 100))
AFTER = Given(
    segments=STORED,
    rolled=(local(0, 100), local(100, 200), local(200, 350), local(350, 500)),
    stored_lineage=LOG,
    checkpoint=LOG,
    high_watermark=600,
    limits=HOLDING,
)


def accepted(view: PartitionView, *, epoch: int = -1, start: int = 0) -> PartitionView:
    state = replace(view.state, accepted_loss_epoch=epoch, accepted_start_offset=start)
    return replace(view, state=state)


def reason(view: PartitionView) -> str:
    blocked = plan(view).trim.blocked
    return "" if blocked is None else blocked.reason


def test_log_when_an_unclean_election_cut_off_what_is_stored_then_diverged_however_long() -> None:
    """R5; scenario 7: also when the log has grown beyond that end again; copies continue."""
    view = AFTER.view()
    assert view.is_diverged
    assert reason(view) == "diverged"
    assert plan(view).deletions == ()
    assert [s.offsets.start_offset for s in copy_candidates(view)] == [250, 350]


def test_log_when_cut_off_then_the_trim_says_what() -> None:
    blocked = plan(AFTER.view()).trim.blocked
    assert blocked is not None
    assert blocked.values == {
        "cut_off_from_offset": 250,
        "cut_off_to_offset": 400,
        "leader_epoch": 1,
    }


@pytest.mark.parametrize(("epoch", "diverged"), [(0, True), (1, False), (5, False)])
def test_log_when_the_loss_is_accepted_then_things_continue(epoch: int, *, diverged: bool) -> None:
    """R5: the acceptance does not cover the loss of a later election."""
    view = accepted(AFTER.view(), epoch=epoch)
    assert view.is_diverged is diverged
    assert (plan(view).trim.offset is None) is diverged


def test_log_when_the_loss_is_accepted_then_what_was_cut_off_is_deleted_after_the_grace() -> None:
    """R5: only segments wholly outside of the log; readers still use part of another one."""
    successor = remote(350, 500, epochs=LOG, changed_ms=NOW_MS - 25 * HOUR_MS, number=7)
    given = replace(AFTER, segments=(*STORED, successor))
    decided = plan(accepted(given.view(), epoch=1)).deletions
    assert [d.record.metadata.offsets.start_offset for d in decided] == [300]
    assert plan(given.view()).deletions == ()


def test_log_when_its_lineage_does_not_reach_back_then_nothing_counts_as_cut_off() -> None:
    """R5: entries that trims removed from the checkpoint do not contradict stored segments."""
    trimmed = Lineage.of((3, 450))
    given = replace(AFTER, stored_lineage=trimmed, checkpoint=trimmed, local_start=450)
    assert given.view().cut_off is None


def test_log_when_what_was_cut_off_has_expired_then_it_is_over() -> None:
    assert replace(AFTER, log_start=400).view().cut_off is None


def test_log_when_set_not_to_hold_then_continues_with_what_is_its_own() -> None:
    """Scenario 8: readers get the common part, even while trims are blocked."""
    view = replace(AFTER, limits=replace(HOLDING, should_hold_after_loss=False)).view()
    assert not view.is_diverged
    assert view.covered_end_offset == 250


def test_copy_when_it_has_not_finished_then_nothing_of_it_is_lost() -> None:
    started = remote(300, 400, epochs=OLD, state=SegmentState.COPY_SEGMENT_STARTED)
    assert replace(AFTER, segments=(*STORED[:2], started)).view().cut_off is None


def test_external_start_when_accepted_then_no_alarm_and_still_a_gap() -> None:
    """R6: the acceptance does not change which records are readable."""
    moved = replace(AFTER, segments=(), local_start=200, trimmed=100, policy=policy())
    view = moved.view()
    assert (view.has_external_start, view.moved_from_offset) == (True, 100)
    assert not accepted(view, start=200).has_external_start
    assert accepted(view, start=199).has_external_start
    assert plan(accepted(view, start=200)).gaps is not None


def test_losses_when_asked_for_then_what_is_not_accepted_yet() -> None:
    segments = tuple(record.metadata for record in STORED)
    state = PartitionState(lineage=LOG, log_starts=log_starts(0), trims=log_starts(100))
    found = losses(state, segments, 150)
    assert found.cut_off is not None
    assert (found.cut_off.leader_epoch, found.cut_off.segment_count) == (1, 2)
    assert found.moved_from_offset == 100
    seen = replace(state, accepted_loss_epoch=1, accepted_start_offset=150)
    assert not losses(seen, segments, 150).has_losses


def test_losses_when_one_kind_is_left_then_something_is() -> None:
    segments = tuple(record.metadata for record in STORED)
    state = PartitionState(lineage=LOG, log_starts=log_starts(0))

    assert losses(state, segments, 0).has_losses
    assert losses(state, (), 1).has_losses
    assert not losses(state, (), 0).has_losses


def test_losses_when_elections_cut_off_several_epochs_then_the_newest_is_to_be_accepted() -> None:
    """An acceptance of the earlier loss would leave the later one."""
    log = Lineage.of((0, 0), (3, 150))
    newest = remote(400, 500, epochs=Lineage.of((2, 400)))
    segments = tuple(record.metadata for record in (newest, *STORED))

    found = losses(PartitionState(lineage=log, log_starts=log_starts(0)), segments, 0).cut_off

    assert found is not None
    assert (found.leader_epoch, found.start_offset, found.end_offset) == (2, 150, 500)


def test_losses_when_no_log_start_is_on_record_then_the_first_record_counts_too() -> None:
    """The lineage begins where the segment does."""
    first = remote(0, 1, epochs=Lineage.of((1, 0)))

    found = losses(PartitionState(lineage=Lineage.of((2, 0))), (first.metadata,), 0).cut_off

    assert found is not None
    assert (found.start_offset, found.end_offset) == (0, 1)


def test_losses_when_the_local_start_follows_the_log_start_then_nobody_else_moved_it() -> None:
    """Expiry moves the log start above the last trim."""
    state = PartitionState(lineage=LOG, log_starts=log_starts(200), trims=log_starts(100))

    assert losses(state, (), 150).moved_from_offset is None
    assert losses(state, (), 201).moved_from_offset == 200


def test_losses_when_a_start_was_accepted_then_the_log_may_still_begin_there() -> None:
    """After `rlm topic resolve`, `--move-log-start` can move the log start there, once."""
    state = PartitionState(log_starts=log_starts(0), accepted_start_offset=150)
    moved = replace(state, log_starts=log_starts(150))

    assert losses(state, (), 150).moved_from_offset is None
    assert losses(state, (), 150, with_accepted_start=True).moved_from_offset == 0
    assert not losses(moved, (), 150, with_accepted_start=True).has_losses
