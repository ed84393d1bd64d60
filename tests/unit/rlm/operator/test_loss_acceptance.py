"""An operator gives up a damaged segment: refused if a repair is possible, else a gap."""

from __future__ import annotations

import re

import pytest

from rlm.operator.loss_acceptance import AcceptableLoss, LossAcceptance
from rlm.operator.pause import Pausing
from rlm.tasks.context.attempt import BoundedAttempt
from rlmm.events.pause import PausableTask
from rlmm.lookup import Absence, NotStored, locate
from rlmm.state.anomalies import AnomalyKind
from rlmm.state.gaps import GapReason
from rsm.segment.errors import InvalidConfigError, NotFoundError
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.fakes.invariants import leftovers, violations
from tests.fakes.world import KEEP_REMOTE, TIP
from tests.unit.rlm.tasks.damaged_world import FINISHED, KEEP_LOCAL, DamagedWorld

GIVEN_UP = [
    "publish GapsRecorded",
    "publish DELETE_SEGMENT_STARTED",
    "publish DELETE_SEGMENT_FINISHED",
]


def acceptance_of(world: DamagedWorld, *, asks_store: bool = True) -> LossAcceptance:
    storage = world.process.ports.storage if asks_store else None
    return LossAcceptance(world.metadata, storage, world.clock, world.new_id)


def examine(world: DamagedWorld, number: int = 1, *, asks_store: bool = True) -> AcceptableLoss:
    attempt = BoundedAttempt(world.clock, world.clock.monotonic_ms() + 60_000, lambda: False)
    local_start_offset = world.leader().log_start_offset
    return acceptance_of(world, asks_store=asks_store).examine(
        world.copied[number].segment_id, local_start_offset, attempt
    )


def accept(world: DamagedWorld, number: int = 1) -> None:
    acceptance_of(world).accept(examine(world, number))


@pytest.mark.parametrize("asks_store", [True, False])
def test_loss_when_accepted_then_a_gap_is_recorded_before_the_segment_is_deleted(
    *, asks_store: bool
) -> None:
    world = DamagedWorld(is_local=False)
    world.lose(1)
    world.pass_cycles()
    started = len(world.process.effects.performed)

    acceptance_of(world).accept(examine(world, asks_store=asks_store))
    world.pass_cycles()

    performed = world.process.effects.performed[started:]
    assert [each for each in performed if re.match("publish (Gaps|DELETE_SEG)", each)] == GIVEN_UP
    (gap,) = world.state().gaps
    assert (gap.offsets.start_offset, gap.offsets.end_offset) == (10, 20)
    assert gap.reason is GapReason.ACCEPTED_LOSS
    assert world.stored() == [(0, 10), (20, 30)]
    assert world.state().anomalies == ()
    assert (world.unreadable(), violations(world), leftovers(world)) == (None, [], [])


def test_acceptance_when_on_record_then_names_the_offsets_that_the_operator_saw() -> None:
    world = DamagedWorld(is_local=False)
    world.lose(1)

    accept(world)

    (accepted,) = (
        each for each in world.state().anomalies if each.kind is AnomalyKind.LOSS_ACCEPTED
    )
    assert accepted.lost == (OffsetRange(start_offset=10, end_offset=20),)


def test_reader_when_the_loss_was_accepted_then_continues_after_the_gap() -> None:
    world = DamagedWorld(is_local=False)
    world.lose(1)
    world.pass_cycles()
    accept(world)
    world.pass_cycles()

    found = locate(world.metadata, TIP, 10)

    assert isinstance(found, NotStored)
    assert (found.absence, found.until_offset) == (Absence.RECORDED_GAP, 20)


def test_loss_when_not_accepted_then_nothing_is_given_up() -> None:
    world = DamagedWorld(is_local=False)
    world.lose(1)
    examine(world)

    world.pass_cycles()

    assert (world.stored_as(1), world.state().gaps) == (FINISHED, ())


def test_loss_when_the_object_is_back_before_the_manager_looks_then_nothing_is_given_up() -> None:
    world = DamagedWorld(is_local=False)
    content = world.lose(1)
    accept(world)
    world.give_back(1, content)

    world.pass_cycles()

    assert (world.finished(), world.state().gaps) == (world.copied, ())
    assert world.state().anomalies == ()


def test_loss_when_the_object_is_back_after_the_managers_look_then_no_gap_is_recorded() -> None:
    """The manager reads a missing object once a minute at most, and a corrupt one once an hour."""
    world = DamagedWorld(is_local=False)
    content = world.lose(1)
    world.pass_cycles()
    world.give_back(1, content)
    acceptance_of(world, asks_store=False).accept(examine(world, asks_store=False))

    for _ in range(4):
        world.process.step()

    (task,) = world.process.leadership.led()
    assert task.damage.damaged == {world.copied[1].segment_id.id}
    assert (world.stored_as(1), world.state().gaps) == (FINISHED, ())


def test_acceptance_when_the_object_was_back_and_is_lost_again_then_counts_no_more() -> None:
    world = DamagedWorld(is_local=False)
    content = world.lose(1)
    accept(world)
    world.give_back(1, content)
    world.pass_cycles()
    world.lose(1)

    world.pass_cycles()

    assert (world.stored_as(1), world.state().gaps) == (FINISHED, ())


def test_acceptance_when_the_broker_has_the_records_then_refused() -> None:
    world = DamagedWorld(is_local=True)
    world.lose(1)

    with pytest.raises(InvalidConfigError, match="broker still has the records"):
        examine(world)


def test_acceptance_when_the_broker_has_the_records_and_it_is_on_record_then_copied_again() -> None:
    """Even a record of another program does not give up records that can be repaired."""
    world = DamagedWorld(is_local=True)
    world.lose(1)
    world.report(1, AnomalyKind.LOSS_ACCEPTED)

    world.pass_cycles()

    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    assert (world.state().gaps, world.unreadable(), violations(world)) == ((), None, [])


def test_acceptance_when_the_objects_are_whole_then_refused() -> None:
    world = DamagedWorld(is_local=False)
    world.report(1, AnomalyKind.MISSING)

    with pytest.raises(InvalidConfigError, match="as recorded"):
        examine(world)


def test_acceptance_on_record_when_the_objects_are_whole_then_deletes_nothing() -> None:
    world = DamagedWorld(is_local=False)
    world.report(1, AnomalyKind.LOSS_ACCEPTED)

    world.pass_cycles()

    assert (world.finished(), world.state().gaps) == (world.copied, ())
    assert world.state().anomalies == ()


def test_acceptance_when_another_segment_has_the_records_then_refused() -> None:
    world = DamagedWorld(is_local=True)
    world.lose(1)
    Pausing(world.metadata, world.new_id).pause(KEEP_LOCAL, {PausableTask.DELETE})
    world.pass_cycles()

    with pytest.raises(InvalidConfigError, match="other segments have"):
        examine(world)
    assert world.stored_as(1) is FINISHED


def test_acceptance_when_the_segment_was_deleted_then_refused() -> None:
    world = DamagedWorld(is_local=True)
    world.lose(1)
    world.pass_cycles()

    with pytest.raises(NotFoundError, match="no such finished segment"):
        examine(world)
    assert world.stored_as(1) is SegmentState.DELETE_SEGMENT_FINISHED


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("act", [*GIVEN_UP, "delete .meta"])
def test_acceptance_when_the_process_dies_at_any_act_then_the_next_one_ends_it(
    act: str, moment: str
) -> None:
    world = DamagedWorld(is_local=False)
    world.lose(1)
    world.pass_cycles()
    accept(world)
    effects = world.process.effects
    (effects.after if moment == "after" else effects.before)(act, effects.crash)
    world.pass_cycles()
    has_died = not world.process.alive
    world.start()

    world.pass_cycles(16)

    assert has_died
    assert world.stored() == [(0, 10), (20, 30)]
    assert (world.unreadable(), violations(world), leftovers(world)) == (None, [], [])


def test_acceptance_when_deletions_are_paused_then_the_segment_stays() -> None:
    world = DamagedWorld(is_local=False)
    world.lose(1)
    accept(world)
    Pausing(world.metadata, world.new_id).pause(KEEP_REMOTE, {PausableTask.DELETE})

    world.pass_cycles()

    assert world.stored_as(1) is FINISHED
    assert [gap.reason for gap in world.state().gaps] == [GapReason.ACCEPTED_LOSS]
