"""The store does not answer and the broker's disk fills: what is kept, shed and logged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.view import OUTAGE_ATTEMPTS, PolicyLimits
from rlm.source.local_disks import DiskUsage, LocalDisks
from rlm.tasks.cycle.leader import LeaderCycle
from rlm.tasks.cycle.outage_watch import OutageLimits, OutageWatch
from rlmm.events.pause import PausableTask, TopicPaused
from rlmm.events.policy import OutagePolicy
from rlmm.state.gaps import GapReason
from rsm.segment.errors import CorruptError, RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process
from tests.fakes.world import INTERVAL_MS, KEEP_REMOTE, TIP, World
from tests.log_records import fields_of

HOLD = replace(KEEP_REMOTE, local_retention_ms=-1)
SHED = replace(HOLD, outage_policy=OutagePolicy.SHED_OLDEST)
UNREACHABLE = RetriableError("store cannot be reached")
DISK_BYTES = 10_000


class ReplicaDisks(LocalDisks):
    """One disk, filled by the broker's files and by other data."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.other_bytes = 0

    def usage(self, topic_id_partition: TopicIdPartition) -> DiskUsage:
        replicas = (self._world.leader(tip) for tip in self._world.tips)
        files = sum(file.size_bytes for replica in replicas for file in replica.on_disk)
        return DiskUsage(name="d", total_bytes=DISK_BYTES, used_bytes=files + self.other_bytes)


class OutageWorld(World):
    """A world whose manager measures a disk of 10 kB, and sheds while more than half is used."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]  # the tests' own names
        self.disks = ReplicaDisks(self)

        class Watching(Process):
            def make_cycle(process) -> LeaderCycle:  # noqa: N805 - the world is `self`
                return LeaderCycle(
                    process.ports,
                    leadership=process.leadership,
                    views=process.make_views(),
                    copies=process.copies,
                    repairs=process.repairs,
                    merges=process.merges,
                    streams=process.streams,
                    expiries=process._make_expiries(),
                    trimmer=process.trimmer,
                    metrics=process.metrics,
                    outages=OutageWatch(
                        self.disks,
                        process.ports.clock,
                        limits=OutageLimits(disk_threshold_percent=50),
                        metrics=process.metrics,
                    ),
                )

        self.process = self.start(process_type=Watching)

    @property
    def segment_bytes(self) -> int:
        return self.leader().files[0].size_bytes

    def lose_store(self) -> None:
        self.cycle()  # which claims the partitions, and records where their logs begin
        self.process.is_store_reachable = False

    def regain_store(self) -> None:
        self.process.is_store_reachable = True

    def pause(self, task: PausableTask) -> None:
        event = TopicPaused(
            event_id=self.new_id(), topic=TIP.topic, topic_id=TIP.topic_id, tasks=frozenset({task})
        )
        assert self.metadata.publish(event).accepted

    def fill(self, percent: int) -> None:
        """Fill the disk to this share."""
        self.disks.other_bytes = 0
        used = self.disks.usage(self.tips[0]).used_bytes
        self.disks.other_bytes = DISK_BYTES * percent // 100 - used

    def gaps(self, number: int = 0) -> list[tuple[int, int]]:
        found = self.state(self.tips[number]).gaps
        return [(gap.offsets.start_offset, gap.offsets.end_offset) for gap in found]


def test_outage_when_policy_is_hold_then_all_is_kept_and_the_time_left_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scenario 93: the manager logs the outage, and logs it again only when it changes."""
    world = OutageWorld(policy=HOLD)
    world.process.is_store_reachable = False
    caplog.set_level("WARNING", "rlm")
    for percent in (60, 60, 60, 70, 80, 90):
        world.segments(1)
        world.fill(percent)
        world.cycle()

    logged = [r for r in caplog.records if "store accepts nothing" in r.message]
    left = world.process.metrics.local_disk_seconds_until_full.labels("d")
    assert world.leader().log_start_offset == 0
    assert world.state().gaps == ()
    assert [fields_of(r)["full"] for r in logged] == ["not soon", "within an hour"]
    assert 0 <= left._value.get() < 3600
    assert world.process.reports[0].lag_segments == 6


def test_outage_when_policy_is_shed_then_the_oldest_is_shed_down_to_the_threshold() -> None:
    """Scenario 93, R6: the gap is on record first; the rest is copied when the store is back."""
    world = OutageWorld(policy=SHED)
    world.segments(1)
    world.settle()
    world.lose_store()
    world.segments(6)
    world.cycle()
    before = world.gaps()
    world.fill(50)
    world.disks.other_bytes += 2 * world.segment_bytes - 1
    world.cycle()
    shed = (world.gaps(), world.leader().log_start_offset)

    world.regain_store()
    world.clock.advance(600_000)
    world.settle()

    assert before == []
    assert shed == ([(10, 20)], 20)
    assert world.state().gaps[0].reason is GapReason.SHED
    assert world.stored() == [(0, 10), *((n, n + 10) for n in range(20, 70, 10))]
    performed = world.process.effects.performed
    assert performed.index("publish GapsRecorded") < performed.index("delete_records")
    assert violations(world) + leftovers(world) == []


def test_shed_when_what_was_released_is_still_there_then_counts_as_gone() -> None:
    """R4: no second shed for space that the broker is about to free."""
    world = OutageWorld(policy=SHED)
    world.lose_store()
    world.segments(8)
    world.cycle()
    world.fill(50)
    world.disks.other_bytes += world.segment_bytes
    for _ in range(30):
        world.clock.advance(INTERVAL_MS)
        world.process.step()

    assert world.gaps() == [(0, 10)]


def test_shed_when_the_disk_is_full_again_at_once_then_waits_for_its_interval() -> None:
    """R4: at most one shed in the time in which brokers free space."""
    world = OutageWorld(policy=SHED)
    world.lose_store()
    world.segments(8)
    world.cycle()
    starts = []
    for _ in range(14):
        world.fill(50)
        world.disks.other_bytes += world.segment_bytes
        world.cycle()
        starts.append(world.leader().log_start_offset)

    assert starts == [10] * 12 + [20] * 2
    assert world.gaps() == [(0, 20)]


def test_shed_when_the_store_is_well_then_nothing_is_shed() -> None:
    """A full disk alone is no outage, because the store accepts data."""
    world = OutageWorld(policy=SHED)
    world.segments(4)
    world.fill(99)

    world.settle()

    assert world.gaps() == []
    assert len(world.stored()) == 4


def test_shed_when_some_attempts_fail_then_nothing_is_shed_before_they_are_many() -> None:
    """R4: only OUTAGE_ATTEMPTS failed attempts of the same copy are an outage."""
    world = OutageWorld(policy=SHED)
    world.segments(4)
    world.fill(99)
    world.process.effects.fail("write .log", UNREACHABLE, times=10_000)
    gaps = []
    while world.process.copy_failure(world.tips[0]) is None or not world.gaps():
        world.cycle()
        failure = world.process.copy_failure(world.tips[0])
        gaps.append((failure.attempts if failure else 0, world.gaps()))

    assert {tuple(found) for attempts, found in gaps if attempts < OUTAGE_ATTEMPTS} == {()}
    assert gaps[-1][1] == [(0, 30)]


def test_shed_when_copies_are_paused_then_nothing_is_shed() -> None:
    """R4: data that is unstored because an operator paused copies is not shed."""
    world = OutageWorld(policy=SHED)
    world.segments(4)
    world.lose_store()
    world.pause(PausableTask.COPY)
    world.fill(99)

    for _ in range(4):
        world.cycle()

    assert world.gaps() == []


def test_shed_when_a_segment_is_corrupt_then_nothing_is_shed() -> None:
    """Nothing after it is shed: the store accepts correct segments."""
    world = OutageWorld(policy=SHED)
    world.segments(4)
    world.fill(99)
    world.process.effects.fail("write .log", CorruptError("a batch is corrupt"), times=10_000)

    for _ in range(4):
        world.cycle()

    assert world.gaps() == []
    assert world.leader().log_start_offset == 0


def test_shed_when_several_partitions_wait_then_the_oldest_data_of_all_is_shed_first() -> None:
    world = OutageWorld(policy=SHED, partitions=2)
    world.lose_store()
    first, second = world.tips
    for tip in (second, first, second, first):
        world.segments(1, tip=tip)
        world.clock.advance(1_000)
    for tip in world.tips:
        world.segments(1, tip=tip)
    world.cycle()
    world.fill(50)
    world.disks.other_bytes += 2 * world.segment_bytes + 1

    world.cycle()

    assert (world.gaps(0), world.gaps(1)) == ([(0, 10)], [(0, 20)])


def test_shed_when_all_is_too_young_then_nothing_is_shed() -> None:
    """R3: the broker keeps the producers' state, by which it recognizes retries."""
    settings = replace(OutageWorld().settings, limits=PolicyLimits(local_trim_min_age_ms=3_600_000))
    world = OutageWorld(policy=SHED, settings=settings)
    world.lose_store()
    world.segments(4)
    world.fill(99)

    world.cycle()
    world.cycle()

    assert world.gaps() == []


def test_shed_when_the_gap_can_not_be_recorded_then_nothing_is_cut() -> None:
    """R6: shedding is always logged."""
    world = OutageWorld(policy=SHED)
    world.lose_store()
    world.segments(4)
    world.cycle()
    world.process.effects.fail("publish GapsRecorded", RetriableError("no answer"))
    world.fill(99)

    world.cycle()

    assert world.leader().log_start_offset == 0
    assert "delete_records" not in world.process.effects.performed
