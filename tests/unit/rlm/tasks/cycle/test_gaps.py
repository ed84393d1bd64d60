"""Records that are deleted from the broker before they were stored: recorded, reported, skipped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.events.policy import PolicyState
from rlmm.state.gaps import GapReason, RecordedGap
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process
from tests.fakes.world import KEEP_REMOTE, World

KEEP_LOCAL = replace(KEEP_REMOTE, local_retention_ms=-1)
UNREACHABLE = RetriableError("store cannot be reached")


def offsets_of(gaps: tuple[RecordedGap, ...]) -> list[tuple[int, int]]:
    return [(gap.offsets.start_offset, gap.offsets.end_offset) for gap in gaps]


def lose(world: World, offset: int) -> None:
    """Delete all records below `offset`, as another program or the broker's retention does."""
    world.leader().move_start(offset)
    world.leader().delete_old_files()


def stored_ten() -> tuple[World, Process]:
    """Return a world that has stored [0, 10), and lost [10, 30) while the store was away."""
    world = World(policy=KEEP_LOCAL)
    world.segments(1)
    process = world.start()
    world.settle()
    process.effects.fail("write .log", UNREACHABLE, times=4)
    world.segments(3)
    world.cycle()
    lose(world, 30)
    return world, process


def test_gap_when_the_broker_deleted_records_then_recorded_and_copying_continues_after(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """R6, scenario 83: an alarm with the offsets; the remote log start stays."""
    world, process = stored_ten()
    caplog.set_level("WARNING", "rlm")

    world.settle()

    (gap,) = world.state().gaps
    alarms = [r for r in caplog.records if "recorded a gap" in r.message]
    assert (offsets_of(world.state().gaps), gap.reason) == ([(10, 30)], GapReason.EXTERNAL_START)
    assert len(alarms) == 1
    assert process.reports[0].has_external_start
    assert world.stored() == [(0, 10), (30, 40)]
    assert world.state().log_start_offset == 0
    assert violations(world) + leftovers(world) == []


def test_gap_when_nothing_was_lost_then_none_is_recorded() -> None:
    """R6: stored records are read from the store, whatever trimmed the local log."""
    world = World(policy=KEEP_LOCAL)
    world.segments(3)
    world.start()
    world.settle()
    lose(world, 20)

    world.settle()

    assert world.state().gaps == ()
    assert violations(world) == []


def test_gap_when_the_leader_changes_then_is_known_to_the_next_one() -> None:
    world, _ = stored_ten()
    world.settle()
    world.restart()
    lose(world, 40)

    world.settle()

    assert offsets_of(world.state().gaps) == [(10, 30)]
    assert world.state().lineage.entries[0].start_offset == 0


def test_gap_when_it_grows_then_one_record_replaces_the_other() -> None:
    """The superseded record is removed: a partition keeps one record of its gaps."""
    world, process = stored_ten()
    world.settle()
    process.effects.fail("write .log", UNREACHABLE, times=9)
    world.segments(2)
    world.cycle()
    lose(world, 60)

    world.settle()

    assert offsets_of(world.state().gaps) == [(10, 30), (40, 60)]
    assert violations(world) == []


def test_gap_when_records_expire_then_is_forgotten_with_them() -> None:
    world, _ = stored_ten()
    world.settle()
    world.set_policy(replace(KEEP_LOCAL, retention_ms=1_000))
    world.clock.advance(3_600_000)

    world.settle()

    assert world.state().gaps == ()
    assert world.object_names() == []


def test_gap_when_tiering_has_ended_then_recorded_without_an_alarm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scenario 77: the broker's own retention continues; reads skip records never stored."""
    world = World(policy=KEEP_LOCAL)
    world.segments(1)
    world.start()
    world.settle()
    world.set_policy(replace(KEEP_LOCAL, state=PolicyState.DISABLED))
    world.segments(3)
    lose(world, 30)
    caplog.set_level("WARNING", "rlm")

    world.settle()

    assert offsets_of(world.state().gaps) == [(10, 30)]
    assert [r for r in caplog.records if "gap" in r.message] == []


def test_gap_when_it_can_not_be_recorded_then_recorded_later() -> None:
    world, process = stored_ten()
    process.effects.fail("publish GapsRecorded", RetriableError("topic cannot be reached"), times=2)

    world.settle()

    assert offsets_of(world.state().gaps) == [(10, 30)]


def test_gap_when_managers_restart_before_it_is_on_record_then_no_trim_hides_it() -> None:
    """R6: a trim would move the recorded start above the gap, and hide it."""
    world, _ = stored_ten()
    world.set_policy(KEEP_REMOTE)
    world.segments(2)
    for _ in range(4):
        world.restart()
        world.cycle()
    blocked = [report.trim_blocked for p in world.running(1) for report in p.reports]
    before = world.leader().log_start_offset

    world.settle()

    assert [each.reason for each in blocked if each is not None] == ["gap_not_recorded"]
    assert before == 30
    assert offsets_of(world.state().gaps) == [(10, 30)]
    assert world.leader().log_start_offset == 50
    assert violations(world) + leftovers(world) == []


def test_gap_when_a_clients_deletion_is_still_on_its_way_then_none_is_recorded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """R13: a gateway records it a moment after the broker took it."""
    world, _ = stored_ten()
    caplog.set_level("WARNING", "rlm")
    world.cycle()
    world.request_log_start(30)

    world.settle()

    assert world.state().gaps == ()
    assert [r for r in caplog.records if "gap" in r.message] == []


def test_gap_when_a_log_comes_back_empty_after_another_history_then_its_past_is_on_record() -> None:
    """R5: the checkpoint no longer shows that the lost records were of another epoch."""
    world = World(brokers=2)
    world.segments(2)
    world.cut_off.add(2)
    world.elect(1)
    world.segments(1)
    world.start(1)
    world.settle()
    lose(world, 30)
    world.request_log_start(30)
    world.settle()
    world.cut_off = {1}
    world.elect(2)
    world.start(2)
    world.settle()
    between = world.state().lineage
    world.cut_off.clear()

    world.elect(1)
    world.segments(2)
    world.settle()

    assert between == Lineage.of((0, 0), (2, 20))
    assert world.state().lineage == Lineage.of((0, 0), (2, 20), (3, 30))
    assert world.state().log_start_offset == 20
    assert offsets_of(world.state().gaps) == [(20, 30)]
    assert world.leader().log_start_offset == 40
    assert violations(world) + leftovers(world) == []


def test_gap_when_a_trim_was_of_what_an_election_cut_off_then_hides_no_later_loss() -> None:
    """R6: the deposed leader had trimmed beyond the end of the present log."""
    world = World(brokers=2)
    world.segments(2)
    world.cut_off.add(2)
    world.segments(4)
    world.start(1)
    world.settle()
    before = world.state().trimmed_offset
    world.cut_off.clear()
    world.elect(2)
    process = world.start(2)
    process.effects.fail("write .log", UNREACHABLE, times=4)
    world.segments(2)
    world.cycle()
    lose(world, 30)

    world.settle()

    assert before == 50
    assert offsets_of(world.state().gaps) == [(20, 30)]
    assert process.reports[0].has_external_start
    assert violations(world) + leftovers(world) == []
