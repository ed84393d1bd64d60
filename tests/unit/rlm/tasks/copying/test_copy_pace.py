"""Scenario 95: the measured throughput decides how many copies run at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from rlm.tasks.context.lanes import Lanes
from rlm.tasks.copying.copy_lane import CopyLanes
from rlm.tasks.copying.copy_pace import CopyPace, PacedContent
from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import BytesSource
from tests.fakes.clock import FakeClock
from tests.fakes.process import Process
from tests.fakes.queued_executor import QueuedExecutor
from tests.fakes.world import World

WINDOW_MS = 2_000


@dataclass
class Bench:
    """Lanes with more jobs than threads; no job ends by itself."""

    keys: int = 12
    clock: FakeClock = field(default_factory=FakeClock)
    executor: QueuedExecutor = field(default_factory=QueuedExecutor)
    shown: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lanes = Lanes(self.executor, "copy", limit=10)
        self.pace = CopyPace(self.clock, self.lanes, max_copies=10, on_limit=self.shown.append)
        for key in range(self.keys):
            self.lanes.offer(key, lambda: None)
        self.end_window()  # the copy began before any other waited

    def end_window(self, *, moved_bytes: int = 0) -> None:
        self.clock.advance(WINDOW_MS)
        if moved_bytes:
            self.pace.count_bytes(moved_bytes)
        else:
            self.pace.evaluate()

    @property
    def running(self) -> int:
        return len(self.executor.waiting)


def test_pace_when_it_begins_then_four_at_once() -> None:
    bench = Bench()
    assert (bench.shown, bench.running) == ([4], 4)


def test_pace_when_more_bring_more_then_more_lanes_open_at_once() -> None:
    bench = Bench()
    bench.end_window(moved_bytes=2_000_000)
    opened = bench.running
    bench.end_window(moved_bytes=4_000_000)
    assert (opened, bench.running, bench.shown) == (8, 10, [4, 8, 10])


def test_pace_when_more_bring_nothing_then_what_runs_ends_and_fewer_follow() -> None:
    bench = Bench()
    bench.end_window(moved_bytes=2_000_000)
    bench.end_window(moved_bytes=2_000_000)
    for _ in range(4):
        bench.executor.run()
    assert (bench.shown, bench.running) == ([4, 8, 4], 4)


def test_pace_when_nothing_moves_and_the_cycle_looks_then_one_more() -> None:
    """Scenario 12: copies that hang move no bytes, so the measurement does not wait for them."""
    bench = Bench()
    bench.end_window()
    assert bench.running == 5


def test_pace_within_a_window_then_nothing_changes() -> None:
    bench = Bench()
    bench.clock.advance(WINDOW_MS - 1)
    bench.pace.count_bytes(10_000_000)
    assert bench.shown == [4]


def test_pace_when_much_is_moved_soon_then_does_not_wait_for_the_longest_window() -> None:
    bench = Bench()
    bench.clock.advance(WINDOW_MS // 4)
    bench.pace.count_bytes(40_000_000)
    assert bench.shown == [4, 8]


def test_content_when_read_then_the_same_pieces_and_counted() -> None:
    bench = Bench()
    source = BytesSource(content=b"x" * 1000)
    bench.clock.advance(WINDOW_MS)
    paced = PacedContent(source=source, pace=bench.pace)
    assert (b"".join(paced.chunks()), paced.length_bytes) == (source.content, 1000)
    assert bench.shown == [4, 8]


class PacedProcess(Process):
    """A process that limits its running copies with a `CopyPace`, as the manager does."""

    def make_copies(self) -> CopyLanes:
        lanes = self.make_lanes("copy")
        self.shown: list[int] = []
        self.pace = CopyPace(self.ports.clock, lanes, max_copies=8, on_limit=self.shown.append)
        return CopyLanes(self.ports, self.attempts(lanes), pace=self.pace)


def test_copies_when_the_store_refuses_then_fewer_at_once_and_all_is_stored_in_the_end() -> None:
    """Scenarios 94, 95: the manager backs off, and stores everything in the end."""
    world = World(partitions=3)
    for tip in world.tips:
        world.segments(2, tip=tip)
    process = world.start(process_type=PacedProcess)
    assert isinstance(process, PacedProcess)
    process.effects.fail("write .log", RetriableError("slow down"), times=3)

    world.settle()

    assert process.shown[:2] == [4, 2]
    assert all(world.stored(tip=tip) == [(0, 10), (10, 20)] for tip in world.tips)
    assert world.audit.violations == []
