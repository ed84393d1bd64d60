"""Offloads: rolled segments are stored now, on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from rlm.operator.offload import CopyProgress, Offload, OffloadedPartition
from rlm.operator.pause import Pausing
from rlmm.events.pause import PausableTask
from rlmm.events.policy import TopicPolicy
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.offload_settings import OffloadMode
from tests.fakes.world import KEEP_REMOTE, TIP, World

LATER = replace(KEEP_REMOTE, local_retention_ms=-1, copy_lag_ms=86_400_000, copy_lag_bytes=-1)


class WorldReports:
    """The reports of the world's managers; each request lets them run a cycle."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.woken_count = 0

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, CopyProgress]:
        self._world.cycle()
        for process in self._world.processes:
            process.watch.step()
        found = {}
        for process in self._world.processes:
            for report in process.reports:
                if report.rolled_end_offset is None or report.stored_end_offset is None:
                    continue
                assert report.offload_offset is not None
                found[report.topic_id_partition] = CopyProgress(
                    rolled_end_offset=report.rolled_end_offset,
                    stored_end_offset=report.stored_end_offset,
                    requested_offset=report.offload_offset,
                    requested_end_offset=report.offload_end_offset,
                    blocked="" if report.copy_blocked is None else report.copy_blocked.reason,
                )
        return found

    def silence(self, tip: TopicIdPartition) -> str:
        return f"no manager speaks of {tip.partition}"

    def wake(self) -> None:
        self.woken_count += 1


def offloaded(
    world: World, said: list[str], *, to_offset: int | None = None, timeout_ms: int = 10_000_000
) -> tuple[OffloadedPartition, ...]:
    offload = Offload(
        world.metadata,
        WorldReports(world),
        world.clock,
        new_id=world.new_id,
        progress=said.append,
    )
    return offload.offload(LATER, world.tips, to_offset=to_offset, timeout_ms=timeout_ms)


@pytest.mark.parametrize(
    ("to_offset", "stored"), [(None, 3), (15, 1), (20, 2), (0, 0), (9, 0), (999, 3)]
)
def test_offload_when_a_lag_lets_segments_wait_then_stores_those_asked_for(
    to_offset: int | None, stored: int
) -> None:
    """PIP-17's trigger: segments wholly before the position, with their objects and checksums."""
    world = World(policy=LATER)
    world.segments(3)
    world.produce(4)
    world.start()
    world.settle()
    before, said = world.stored(), list[str]()

    (done,) = offloaded(world, said, to_offset=to_offset)

    objects = [each for metadata in done.segments for each in metadata.objects]
    assert before == []
    assert world.stored() == [(0, 10), (10, 20), (20, 30)][:stored]
    assert [m.offsets.start_offset for m in done.segments] == [0, 10, 20][:stored]
    assert done.end_offset == 10 * stored
    assert all(each.crc32c is not None and each.length_bytes for each in objects)


def test_offload_when_all_is_stored_then_asks_for_nothing() -> None:
    world = World(policy=replace(LATER, copy_lag_ms=0))
    world.segments(2)
    world.start()
    world.settle()

    (done,) = offloaded(world, [])

    assert (done.end_offset, done.segments) == (20, ())
    assert world.state().offload_requested_offset is None


def test_offload_when_it_takes_too_long_then_says_what_is_not_stored() -> None:
    world = World(policy=LATER)
    world.segments(2)
    process = world.start()
    process.effects.fail("write .log", RetriableError("store cannot be reached"), times=99)
    said: list[str] = []

    with pytest.raises(RetriableError, match="the offload is not complete in time"):
        offloaded(world, said, timeout_ms=300_000)

    assert said[-1] == "orders:0 stored to 0 of 20, blocked: failing"


def test_offload_when_copying_is_paused_then_refused() -> None:
    world = World(policy=LATER)
    Pausing(world.metadata, world.new_id).pause(LATER, {PausableTask.COPY})

    with pytest.raises(InvalidConfigError, match="paused"):
        offloaded(world, [])

    assert world.metadata.partition_state(TIP).offload_requested_offset is None


class _Rounds:
    """Managers that report these values, one after the other."""

    def __init__(self, reports: Sequence[Mapping[TopicIdPartition, CopyProgress]]) -> None:
        self._reports = iter(reports)

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, CopyProgress]:
        del policy
        return next(self._reports)

    def silence(self, tip: TopicIdPartition) -> str:
        return f"no manager reports {tip.partition}"

    def wake(self) -> None: ...


class _SilentManagers:
    """Managers of which none answers until `heard` is set."""

    def __init__(self, source: WorldReports) -> None:
        self._source = source
        self.heard = False

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, CopyProgress]:
        return self._source.rolled(policy) if self.heard else {}

    def silence(self, tip: TopicIdPartition) -> str:
        return f"the manager of broker 1 does not answer of {tip.partition}"

    def wake(self) -> None: ...


def test_offload_when_a_manager_does_not_answer_then_says_so_and_continues_when_it_does() -> None:
    """The command must report why it waits."""
    world = World(policy=LATER)
    world.segments(2)
    world.start()
    world.settle()
    source, said = _SilentManagers(WorldReports(world)), list[str]()
    started_ms = world.clock.monotonic_ms()
    times_ms: list[int] = []

    def progress(text: str) -> None:
        said.append(text)
        times_ms.append(world.clock.monotonic_ms() - started_ms)
        source.heard = "does not answer" in text

    offload = Offload(world.metadata, source, world.clock, new_id=world.new_id, progress=progress)
    (done,) = offload.offload(LATER, world.tips, to_offset=None, timeout_ms=10_000_000)

    assert done.end_offset == 20
    assert said[0] == "orders: asking the leaders' managers (partitions=1)"
    assert said[1].endswith("the manager of broker 1 does not answer of 0")
    assert times_ms[1] < 1000


class _OneSilentLeader:
    """Two partitions; the manager of the second one's leader never answers."""

    def __init__(self, source: WorldReports) -> None:
        self._source = source

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, CopyProgress]:
        return {
            tip: reported for tip, reported in self._source.rolled(policy).items() if tip == TIP
        }

    def silence(self, tip: TopicIdPartition) -> str:
        return f"the manager of broker 2 does not answer of {tip.partition}"

    def wake(self) -> None: ...


def test_offload_when_one_manager_never_answers_then_the_other_partitions_are_stored() -> None:
    """The command must not wait for all leaders before it requests the offload of the others."""
    world = World(policy=LATER, partitions=2)
    for tip in world.tips:
        world.segments(2, tip=tip)
    world.start()
    world.settle()
    source, said = _OneSilentLeader(WorldReports(world)), list[str]()
    offload = Offload(
        world.metadata, source, world.clock, new_id=world.new_id, progress=said.append
    )

    with pytest.raises(RetriableError, match="the manager of broker 2 does not answer of 1"):
        offload.offload(LATER, world.tips, to_offset=None, timeout_ms=600_000)

    assert world.stored() == [(0, 10), (10, 20)]


def test_offload_when_a_stored_partitions_manager_falls_silent_then_ends_with_the_others() -> None:
    world = World(policy=LATER, partitions=2)
    first, second = world.tips
    nothing = CopyProgress(
        rolled_end_offset=0, stored_end_offset=0, requested_offset=-1, requested_end_offset=0
    )
    waiting = replace(nothing, rolled_end_offset=10)
    stored = replace(waiting, stored_end_offset=10, requested_offset=10, requested_end_offset=10)
    source = _Rounds([{first: nothing, second: waiting}, {second: stored}])
    offload = Offload(
        world.metadata, source, world.clock, new_id=world.new_id, progress=lambda _: None
    )

    done = offload.offload(LATER, world.tips, to_offset=None, timeout_ms=60_000)

    assert [(each.partition, each.end_offset) for each in done] == [(first, 0), (second, 10)]


def test_offload_when_no_manager_answers_in_time_then_the_error_names_it() -> None:
    world = World(policy=LATER)
    world.segments(2)
    source = _SilentManagers(WorldReports(world))
    offload = Offload(
        world.metadata, source, world.clock, new_id=world.new_id, progress=lambda _: None
    )

    with pytest.raises(RetriableError, match="the manager of broker 1 does not answer"):
        offload.offload(LATER, world.tips, to_offset=None, timeout_ms=1000)


class _EarlierManager:
    """A manager of version 0.1.0, which also stores the segment that contains the position."""

    def __init__(self, *stored_end_offsets: int) -> None:
        self._stored_end_offsets = iter(stored_end_offsets)

    def rolled(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, CopyProgress]:
        return {
            TIP: CopyProgress(
                rolled_end_offset=30,
                stored_end_offset=next(self._stored_end_offsets),
                requested_offset=15,
                requested_end_offset=None,
            )
        }

    def silence(self, tip: TopicIdPartition) -> str:
        return ""

    def wake(self) -> None: ...


def test_offload_when_a_manager_is_of_an_earlier_version_then_waits_for_all_it_stores() -> None:
    world = World(policy=LATER)
    offload = Offload(
        world.metadata, _EarlierManager(0, 10, 20), world.clock, new_id=world.new_id, progress=print
    )

    (done,) = offload.offload(LATER, [TIP], to_offset=15, timeout_ms=10_000)

    assert done.end_offset == 15


def test_request_when_segments_wait_then_returns_the_position_before_they_are_stored() -> None:
    world = World(policy=LATER)
    world.segments(3)
    world.produce(4)
    world.start()
    world.settle()
    offload = Offload(
        world.metadata,
        WorldReports(world),
        world.clock,
        new_id=world.new_id,
        progress=lambda _text: None,
    )

    (requested,) = offload.request(LATER, world.tips, to_offset=None)

    assert (requested.offset, requested.stored_end_offset) == (30, 0)
    assert world.metadata.partition_state(TIP).offload_requested_offset == 30
    assert world.stored() == []


def test_request_when_a_manager_does_not_answer_then_requests_nothing() -> None:
    world = World(policy=LATER)
    world.segments(1)
    world.start()
    world.settle()
    silent = replace(TIP, partition=99)
    offload = Offload(
        world.metadata,
        WorldReports(world),
        world.clock,
        new_id=world.new_id,
        progress=lambda _text: None,
    )

    with pytest.raises(RetriableError, match="nothing was requested"):
        offload.request(LATER, [*world.tips, silent], to_offset=None)

    assert world.metadata.partition_state(TIP).offload_requested_offset is None


STREAMED = replace(
    KEEP_REMOTE,
    local_retention_ms=-1,
    offload_mode=OffloadMode.STREAM,
    offload_segment_rollover_ms=3_600_000,
)


@pytest.mark.parametrize(("to_offset", "reached"), [(None, 12), (5, 5), (999, 12)])
def test_offload_when_streamed_then_completes_the_segment_and_returns_the_position_reached(
    to_offset: int | None, reached: int
) -> None:
    """PIP-76: the manual trigger."""
    world = World(policy=STREAMED)
    world.produce(12)
    world.start()
    world.cycle()
    before = world.stored()

    (done,) = offloaded(world, [], to_offset=to_offset)

    assert before == []
    assert done.end_offset == reached
    assert [each.offsets.start_offset for each in done.segments] == [0]
    assert world.stored()[0][1] >= reached


def test_offload_when_it_waits_then_wakes_the_managers_at_intervals() -> None:
    """A manager reads requests, and reports what it stored, only in a cycle."""
    world = World(policy=LATER)
    world.segments(1)
    process = world.start()
    process.effects.fail("write .log", RetriableError("store cannot be reached"), times=99)
    source = WorldReports(world)
    offload = Offload(
        world.metadata, source, world.clock, new_id=world.new_id, progress=lambda _: None
    )

    with pytest.raises(RetriableError, match="the offload is not complete in time"):
        offload.offload(LATER, world.tips, to_offset=None, timeout_ms=300_000)

    assert source.woken_count == 10


def test_request_when_written_then_wakes_the_managers_once() -> None:
    world = World(policy=LATER)
    world.segments(1)
    world.start()
    world.settle()
    source = WorldReports(world)
    offload = Offload(
        world.metadata, source, world.clock, new_id=world.new_id, progress=lambda _: None
    )

    offload.request(LATER, world.tips, to_offset=None)

    assert source.woken_count == 1
