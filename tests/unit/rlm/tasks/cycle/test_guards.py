"""Each guard has a variant without it, and a sequence of faults that shows what the guard prevents.

The variant breaks an invariant, and the manager with the guard breaks none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rlm.facts.share_group_start import ShareGroupStart
from rlmm.events.segment import SegmentEvent
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState, StoredObject
from tests.fakes.invariants import violations
from tests.fakes.process import Process
from tests.fakes.unguarded import (
    WithHolesCounting,
    WithoutConfirmation,
    WithoutExpectedState,
    WithoutShareGroups,
    WithoutTrimOnRecord,
    WithoutVerification,
    WithUnfinishedCounting,
)
from tests.fakes.world import TIP, World
from tests.segment_builder import build_batch, records
from tests.unit.rlm.tasks.single_copies import copy_only

FINISHED = SegmentState.COPY_SEGMENT_FINISHED


def finished_is_never_known(world: World) -> None:
    """Let a manager write all objects, but not the event that records them."""
    world.segments(2)
    failing = world.start().effects
    failing.fail("publish COPY_SEGMENT_FINISHED", RetriableError("no topic"), times=20)
    failing.fail("publish DELETE_SEGMENT_STARTED", RetriableError("no topic"), times=20)
    for _ in range(4):
        world.cycle()


def second_of_three_is_missing(world: World) -> None:
    """Store the first and the third segment; each copy of the second one fails."""
    world.segments(4)
    process = world.start()
    process.leadership.claim_all(process.leadership.keep_only({TIP: 0}))
    copy_only(world, process, 0)
    copy_only(world, process, 2)
    process.effects.fail("write .log", RetriableError("no store"), times=20)
    for _ in range(4):
        world.cycle()


def finished_meets_its_deletion(world: World) -> None:
    """Let a second manager delete a copy as a leftover at the moment when it is finished."""
    world.segments(1)
    first = world.start()
    first.effects.before("publish COPY_SEGMENT_FINISHED", first.effects.crash)
    world.cycle()
    left = world.records()[0].metadata
    second = world.start()

    def finish_late() -> None:
        objects = tuple(
            StoredObject(key=info.name, length_bytes=info.length_bytes, crc32c=info.crc32c)
            for info in (world.objects.info(stored.key) for stored in left.objects)
        )
        finished = replace(left, state=FINISHED, objects=objects)
        event = SegmentEvent(event_id=world.new_id(), metadata=finished)
        assert world.metadata.publish(event).accepted

    second.effects.before("publish DELETE_SEGMENT_STARTED", finish_late)
    world.settle()


def claimed_before_the_cut(world: World) -> None:
    """Let a second manager of the broker claim between the trim event and DeleteRecords."""
    world.segments(3)
    first = world.start()
    first.effects.after("publish LocalLogTrimmed", lambda: world.start(process_type=Process).step())
    world.settle()


def trimmed_once(world: World) -> None:
    """Trim once, without a fault."""
    world.segments(3)
    world.start()
    world.settle()


def cut_and_grown_after_the_last_byte(world: World) -> None:
    """Truncate the file and let it grow again in the same epoch, after all bytes were read."""
    world.segments(2)
    replica = world.leader()

    def rewrite() -> None:
        replica.truncate(15)
        replica.append(build_batch(records(5, base_offset=15), leader_epoch=0))
        replica.roll()
        world.commit()

    process = world.start()
    process.effects.after("write .log", lambda: process.effects.after("write .log", rewrite))
    world.settle()
    world.segments(1)
    world.settle()


def share_group_is_behind(world: World) -> None:
    """Let a share group read more slowly than segments are stored."""
    world.share_groups.started[TIP] = ShareGroupStart(group="sharers", offset=13)
    world.segments(3)
    world.start()
    world.settle()


Fault = Callable[[World], None]

GUARDS: tuple[tuple[type[Process], Fault, str], ...] = (
    (WithUnfinishedCounting, finished_is_never_known, "is not stored"),
    (WithHolesCounting, second_of_three_is_missing, "is not stored"),
    (WithoutExpectedState, finished_meets_its_deletion, "deletes the finished copy"),
    (WithoutConfirmation, claimed_before_the_cut, "without the newest claim"),
    (WithoutTrimOnRecord, trimmed_once, "which is not recorded"),
    (WithoutVerification, cut_and_grown_after_the_last_byte, "with other bytes"),
    (WithoutShareGroups, share_group_is_behind, "a share group has come to 13"),
)


@pytest.mark.parametrize(("variant", "fault", "broken"), GUARDS)
def test_variant_when_its_guard_is_missing_then_an_invariant_breaks(
    variant: type[Process], fault: Fault, broken: str
) -> None:
    """Scenarios 14, 79, 80, 100, 105; R1, R2, R7, R8, R21."""
    world = World(process_type=variant)

    fault(world)

    assert any(broken in violation for violation in violations(world))


@pytest.mark.parametrize("fault", [fault for _, fault, _ in GUARDS])
def test_product_when_it_meets_the_same_fault_then_all_invariants_hold(fault: Fault) -> None:
    """Scenarios 14, 79, 80, 100, 105; R1, R2, R7, R8, R21."""
    world = World()

    fault(world)

    assert violations(world) == []
