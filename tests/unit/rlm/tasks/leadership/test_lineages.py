"""Contradictions between a broker's leader epochs and the recorded ones, and what they block."""

from __future__ import annotations

from rsm.segment.epochs import EpochEntry, Lineage
from tests.fakes.invariants import violations
from tests.fakes.process import Process
from tests.fakes.world import World


def trimmed_world() -> tuple[World, Process]:
    """Return a world with three segments, stored and trimmed."""
    world = World()
    world.segments(3)
    process = world.start()
    world.settle()
    return world, process


def test_checkpoint_when_first_entry_was_rewritten_then_old_segments_stay_referenced() -> None:
    """R5: after a trim the first entry is only an upper bound of where its epoch began."""
    world, _ = trimmed_world()
    rewritten = world.leader().checkpoint

    world.restart()
    world.settle()

    assert rewritten == Lineage.of((0, 20))
    assert world.state().lineage == Lineage.of((0, 0))
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    assert violations(world) == []


def test_lineage_when_contradicted_then_held_also_after_a_new_claim() -> None:
    """R5: another epoch for the same offset stops copies and trims until it is repaired."""
    world, process = trimmed_world()
    world.elect(1)
    world.segments(2)
    world.settle()
    stored, replica = world.stored(), world.leader()
    replica.epochs = [EpochEntry(epoch=0, start_offset=40)]
    world.elect(1)
    world.segments(3)

    world.settle()

    blocked = process.reports[0].trim_blocked
    assert blocked is not None
    assert (blocked.reason, blocked.values) == ("lineage_conflict", {"offset": 40})
    assert replica.log_start_offset == 40
    assert world.stored() == stored
    assert world.state().lineage == Lineage.of((0, 0), (1, 30))


def test_lineage_when_what_contradicts_it_is_deleted_then_things_continue() -> None:
    """R5: docs/operations.md has this remedy; stored records stay readable."""
    world, process = trimmed_world()
    world.elect(1)
    world.segments(2)
    world.settle()
    stored, replica = world.stored(), world.leader()
    replica.epochs = [EpochEntry(epoch=0, start_offset=40)]
    world.elect(1)
    world.segments(3)
    world.settle()

    newest = replica.checkpoint.entries[-1].start_offset
    replica.move_start(newest)
    world.settle()

    blocked = process.reports[0].trim_blocked
    assert blocked is not None
    assert blocked.reason == "newest_rolled_segment"
    assert world.stored() == [*stored, (50, 60), (60, 70), (70, 80)]
    assert world.state().lineage == Lineage.of((0, 0), (1, 30), (2, 50))
    assert violations(world) == []
