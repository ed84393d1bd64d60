"""Damaged segments are copied again, and deleted only when other segments have their records."""

from __future__ import annotations

import logging
import re
from uuid import UUID

import pytest

from rlm.policy.plan import DeleteSegment
from rlm.policy.repair import MAX_DAMAGED_COPIES
from rlm.tasks.integrity.damage_proof import DamageProof
from rlmm.state.anomalies import AnomalyKind
from rsm.segment.errors import FencedError, RetriableError
from rsm.segment.metadata import SegmentState
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process
from tests.unit.rlm.tasks.damaged_world import FINISHED, DamagedWorld

COPIED_AGAIN = [
    "publish COPY_SEGMENT_STARTED",
    "publish COPY_SEGMENT_FINISHED",
    "publish DELETE_SEGMENT_STARTED",
    "publish DELETE_SEGMENT_FINISHED",
]


@pytest.mark.parametrize("kind", [AnomalyKind.MISSING, AnomalyKind.CORRUPT])
def test_damage_when_the_broker_has_the_range_then_copied_again_before_the_old_one_is_deleted(
    kind: AnomalyKind,
) -> None:
    world = DamagedWorld(is_local=True)
    started = len(world.process.effects.performed)
    if kind is AnomalyKind.MISSING:
        world.lose(1)
    else:
        world.flip_bit(1)

    world.pass_cycles()

    published = [
        name for name in world.process.effects.performed[started:] if _is_segment_event(name)
    ]
    assert published == COPIED_AGAIN
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    assert world.stored_as(1) is SegmentState.DELETE_SEGMENT_FINISHED
    assert world.state().anomalies == ()
    assert (world.unreadable(), violations(world), leftovers(world)) == (None, [], [])


def test_damage_when_the_broker_has_not_the_range_then_kept_until_the_object_is_back() -> None:
    """Nothing is deleted: the object may be restored."""
    world = DamagedWorld(is_local=False)
    content = world.lose(1)

    world.pass_cycles()
    while_lost = (world.stored_as(1), len(world.state().anomalies))
    world.give_back(1, content)
    world.pass_cycles()

    assert while_lost == (FINISHED, 1)
    assert world.stored_as(1) is FINISHED
    assert (world.state().anomalies, world.unreadable(), violations(world)) == ((), None, [])


def test_report_when_the_object_is_whole_then_nothing_is_copied_or_deleted() -> None:
    world = DamagedWorld(is_local=True)
    world.report(1, AnomalyKind.CORRUPT)

    world.pass_cycles()

    assert world.finished() == world.copied
    assert world.state().anomalies == ()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("act", [*COPIED_AGAIN, "write .log", "delete .meta"])
def test_repair_when_the_process_dies_at_any_act_then_the_next_one_ends_it(
    act: str, moment: str
) -> None:
    """The damaged segment stays finished on record until the new copy is finished."""
    world = DamagedWorld(is_local=True)
    world.lose(1)
    effects = world.process.effects
    (effects.after if moment == "after" else effects.before)(act, effects.crash)
    world.pass_cycles()
    has_died = not world.process.alive
    world.start()

    world.pass_cycles(16)

    assert has_died
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    assert (world.unreadable(), violations(world), leftovers(world)) == (None, [], [])


def test_damage_when_every_copy_is_damaged_too_then_copying_again_ends() -> None:
    """A store that damages every object is not filled with copies."""
    world = DamagedWorld(is_local=True)
    for _ in range(3 * MAX_DAMAGED_COPIES):
        for record in world.finished():
            if record.offsets.start_offset == 10 and world.objects.exists(record.objects[0].key):
                world.copied[1] = record
                world.lose(1)
        world.pass_cycles(2)

    assert world.stored().count((10, 20)) == MAX_DAMAGED_COPIES + 1


def test_repair_when_it_fails_then_reported_and_logged_only_when_it_is_tried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """While the pause after a failure lasts, nothing is copied, and the log says nothing."""
    world = DamagedWorld(is_local=True)
    world.process.effects.fail("write .log", RetriableError("store refuses"), times=99)
    started = world.process.effects.performed.count("publish COPY_SEGMENT_STARTED")
    world.lose(1)
    with caplog.at_level(logging.INFO, "rlm.tasks.copying.repairs"):
        for _ in range(6):
            world.process.step()
    attempts = world.process.effects.performed.count("publish COPY_SEGMENT_STARTED") - started

    logged = [each for each in caplog.records if each.name == "rlm.tasks.copying.repairs"]
    (row,) = (report.to_json() for report in world.process.reports)
    assert (attempts, len(logged)) == (1, 1)
    assert row["repair_failure"] == {
        "error": "store refuses",
        "cause": "store refuses",
        "corrupt": False,
        "attempts": 1,
        "final": False,
    }
    assert row["copy_blocked"] is None


class FirstRefused(DamageProof):
    """Never confirms the deletion of the first segment."""

    refused: UUID | None = None
    asked_count = 0

    def require(self, action: DeleteSegment) -> None:
        if not action.is_damaged:
            return
        segment = action.record.metadata.segment_id.id
        self.refused = self.refused or segment
        if segment == self.refused:
            self.asked_count += 1
            raise FencedError("the objects are whole again")
        super().require(action)


class DoubtingProcess(Process):
    """A process whose last check refuses one segment."""

    proof: FirstRefused

    def make_proof(self) -> DamageProof:
        self.proof = FirstRefused(self.ports, self.stopping)
        return self.proof


def test_damage_when_the_last_check_refuses_one_segment_then_the_others_go() -> None:
    """The check may read the whole segment, so the manager repeats it only after a pause."""
    world = DamagedWorld(is_local=True, process_type=DoubtingProcess)
    world.lose(0)
    world.lose(1)

    world.pass_cycles()
    for _ in range(8):
        world.cycle()

    process = world.process
    assert isinstance(process, DoubtingProcess)
    states = {number: world.stored_as(number) for number in (0, 1)}
    assert sorted(states.values(), key=lambda each: each.value) == [
        FINISHED,
        SegmentState.DELETE_SEGMENT_FINISHED,
    ]
    assert 1 <= process.proof.asked_count <= 4


def _is_segment_event(name: str) -> bool:
    return re.match(r"publish (COPY|DELETE)_SEGMENT", name) is not None
