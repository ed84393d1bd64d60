"""The scrub finds damaged objects before a reader does, slowly."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from uuid import UUID, uuid4

import pytest
from prometheus_client import CollectorRegistry

from rlm.metrics.metrics import Metrics
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.integrity.scrub import Scrub, ScrubLimits
from rlmm.state.anomalies import AnomalyKind
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.storage.chunk_storage import ChunkInfo
from rsm.storage.memory import MemoryChunkStorage
from tests.remote_world import TIP, WHOLE, RemoteWorld, segment_of

SECOND_MS = 1_000
DAY_MS = 86_400_000
FIRST_WAIT_MS = 600_000
LIMITS = ScrubLimits(
    interval_ms=DAY_MS,
    segments_per_second=2,
    read_percent_per_day=0,
)
NO_LIMIT = 1 << 40
PASS_MS = 300_000


class RefusingStorage(MemoryChunkStorage):
    """Refuses `info` for some objects."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        super().__init__(wall_ms=wall_ms)
        self.refused: set[str] = set()
        self.refused_count = 0

    def info(self, name: str) -> ChunkInfo:
        if name in self.refused:
            self.refused_count += 1
            raise RetriableError("the store refuses", name=name)
        return super().info(name)


class CountedPasses:
    """Counts the scrub's passes from 0, in memory."""

    def __init__(self) -> None:
        self._number = 0

    def begin(self) -> int:
        return self._number

    def end(self) -> None:
        self._number += 1


class ScrubbedWorld(RemoteWorld):
    """Five stored segments of one led partition."""

    def __init__(
        self,
        limits: ScrubLimits = LIMITS,
        bytes_per_second: int = NO_LIMIT,
        *,
        first_partition: int = 0,
        stopping: Event | None = None,
    ) -> None:
        self.store_of_objects = RefusingStorage(lambda: 0)
        super().__init__(self.store_of_objects)
        self.claim()
        self.segments = [self.store(segment_of(number)) for number in range(5)]
        self.led: tuple[TopicIdPartition, ...] = (TIP,)
        self.metrics = Metrics(CollectorRegistry())
        ports = object.__new__(Ports)
        for name in ("metadata", "storage", "clock"):
            object.__setattr__(ports, name, getattr(self, name))
        object.__setattr__(ports, "new_id", uuid4)
        self.scrub = Scrub(
            ports,
            led=lambda: self.led,
            limits=limits,
            metrics=self.metrics,
            stopping=stopping or Event(),
            throttle=CopyThrottle(
                self.clock,
                bytes_per_second=bytes_per_second,
                sharers=1,
                waited=lambda _: None,
            ),
            passes=CountedPasses(),
            pick=lambda count: first_partition % count,
        )

    def lose(self, segment: RemoteLogSegmentMetadata) -> str:
        key = segment.objects[0].key
        self.objects.delete(key)
        return key

    def pass_ms(self, duration_ms: int) -> None:
        """Advance the clock, and run one step."""
        self.clock.now_ms += duration_ms
        self.scrub.step()
        assert self.metadata.caught_up(TIP)

    def checked(self, check: str = "stat") -> float:
        labels = {"check": check}
        return self.metrics.registry.get_sample_value("rlm_scrubbed_segments_total", labels) or 0.0

    def found(self) -> list[tuple[str, AnomalyKind]]:
        anomalies = self.metadata.partition_state(TIP).anomalies
        return [(each.object_key, each.kind) for each in anomalies]


def test_scrub_when_an_object_is_lost_then_on_record_without_any_reader() -> None:
    world = ScrubbedWorld()
    key = world.lose(world.segments[3])
    world.pass_ms(FIRST_WAIT_MS)
    for _ in range(3):
        world.pass_ms(SECOND_MS)

    assert world.found() == [(key, AnomalyKind.MISSING)]
    assert world.checked() == 5


def test_scrub_when_a_step_comes_then_checks_no_more_than_the_rate_allows() -> None:
    world = ScrubbedWorld()
    world.pass_ms(FIRST_WAIT_MS - SECOND_MS)
    checked = [world.checked()]
    for _ in range(4):
        world.pass_ms(SECOND_MS)
        checked.append(world.checked())

    assert checked == [0, 2, 4, 5, 5]


def test_scrub_when_a_pass_has_ended_then_the_next_begins_after_the_interval() -> None:
    world = ScrubbedWorld()
    world.pass_ms(FIRST_WAIT_MS)
    for _ in range(5):
        world.pass_ms(SECOND_MS)
    key = world.lose(world.segments[0])
    world.pass_ms(DAY_MS - 10 * SECOND_MS)
    before = world.found()

    world.pass_ms(10 * SECOND_MS)

    assert (before, world.found()) == ([], [(key, AnomalyKind.MISSING)])


def test_scrub_when_it_is_off_then_checks_nothing() -> None:
    world = ScrubbedWorld(replace(LIMITS, interval_ms=0))
    world.lose(world.segments[0])
    world.pass_ms(FIRST_WAIT_MS)
    world.pass_ms(DAY_MS)

    assert (world.found(), world.checked()) == ([], 0)


def test_scrub_when_a_partition_is_no_longer_led_then_leaves_it_to_its_leader() -> None:
    world = ScrubbedWorld()
    world.lose(world.segments[0])
    world.led = ()
    world.pass_ms(FIRST_WAIT_MS)
    world.pass_ms(SECOND_MS)

    assert (world.found(), world.checked()) == ([], 0)


def test_scrub_when_a_segment_is_being_deleted_then_its_objects_are_missing_rightly() -> None:
    world = ScrubbedWorld()
    world.begin_deletion(world.segments[0])
    world.lose(world.segments[0])
    world.pass_ms(FIRST_WAIT_MS)
    for _ in range(4):
        world.pass_ms(SECOND_MS)

    assert (world.found(), world.checked()) == ([], 4)


@pytest.mark.parametrize(("percent", "read"), [(100, 5), (0, 0)])
def test_scrub_when_a_share_is_read_each_day_then_reads_that_share(percent: int, read: int) -> None:
    world = ScrubbedWorld(replace(LIMITS, read_percent_per_day=percent))
    world.pass_ms(FIRST_WAIT_MS)
    for _ in range(4):
        world.pass_ms(SECOND_MS)

    assert (world.checked("read"), world.checked("stat")) == (read, 5 - read)


def test_scrub_when_a_half_is_read_each_day_then_all_of_it_in_two_passes() -> None:
    world = ScrubbedWorld(replace(LIMITS, read_percent_per_day=50))
    world.pass_ms(FIRST_WAIT_MS)
    for _ in range(2):
        for _ in range(4):
            world.pass_ms(SECOND_MS)
        world.pass_ms(DAY_MS)

    for _ in range(4):
        world.pass_ms(SECOND_MS)

    assert world.checked("read") >= 5


@pytest.mark.parametrize("intervals", [1, 2, 3])
def test_scrub_when_passes_take_several_intervals_then_each_segment_is_read_all_the_same(
    intervals: int,
) -> None:
    """The pass number selects the share.

    If the time selected it, half would never be read where a pass takes two intervals.
    """
    world = ScrubbedWorld(replace(LIMITS, read_percent_per_day=50))
    world.pass_ms(FIRST_WAIT_MS)
    for _ in range(4):
        world.pass_ms(SECOND_MS)
    world.pass_ms(intervals * DAY_MS)
    for _ in range(4):
        world.pass_ms(SECOND_MS)

    assert world.checked("read") == 5


def test_scrub_when_a_pass_begins_then_with_any_partition() -> None:
    """Passes that restarts interrupt must not omit the same segments each time."""
    world = ScrubbedWorld(first_partition=1)
    other = replace(TIP, partition=TIP.partition + 1)
    world.claim(partition=other)
    elsewhere = world.store(segment_of(0), partition=other)
    world.led = (TIP, other)
    world.lose(world.segments[0])
    world.lose(elsewhere)
    world.pass_ms(FIRST_WAIT_MS - SECOND_MS)
    world.pass_ms(SECOND_MS // 2)
    world.pass_ms(SECOND_MS // 2)
    found = [len(world.metadata.partition_state(each).anomalies) for each in (TIP, other)]

    assert (world.checked(), found) == (1, [0, 1])


def test_scrub_when_a_bit_was_flipped_then_found_by_reading() -> None:
    world = ScrubbedWorld(replace(LIMITS, read_percent_per_day=100))
    key = world.segments[2].objects[0].key
    content = world.objects.read_range(key, WHOLE)
    world.rewrite(key, bytes([content[0] ^ 1]) + content[1:])
    world.pass_ms(FIRST_WAIT_MS)
    for _ in range(4):
        world.pass_ms(SECOND_MS)

    assert world.found() == [(key, AnomalyKind.CORRUPT)]


def test_scrub_when_segments_are_read_then_no_faster_than_its_rate() -> None:
    """The scrub reads one piece of 1 MiB each second."""
    world = ScrubbedWorld(replace(LIMITS, read_percent_per_day=100), 1 << 20)
    before_ms = world.clock.monotonic_ms() + FIRST_WAIT_MS
    world.pass_ms(FIRST_WAIT_MS)

    pieces = sum(len(each.objects) for each in world.segments)
    assert world.checked("read") == 5
    assert world.clock.monotonic_ms() - before_ms >= (pieces - 1) * SECOND_MS


def test_scrub_when_a_partition_has_no_room_then_continues_and_logs_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = ScrubbedWorld()
    other = replace(TIP, partition=TIP.partition + 1)
    world.claim(partition=other)
    elsewhere = world.store(segment_of(0), partition=other)
    world.led = (TIP, other)
    world.fill_anomalies(UUID(int=0xF0))
    for segment in (*world.segments[:2], elsewhere):
        world.lose(segment)
    world.pass_ms(FIRST_WAIT_MS)
    for _ in range(4):
        world.pass_ms(SECOND_MS)

    recorded = world.metadata.partition_state(other).anomalies
    assert [each.segment for each in recorded] == [elsewhere.segment_id.id]
    assert world.checked() == 6
    assert len([each for each in caplog.records if each.levelno == logging.WARNING]) == 1


def test_scrub_when_the_store_refuses_one_segment_then_checks_the_others_and_ends_the_pass() -> (
    None
):
    world = ScrubbedWorld()
    world.store_of_objects.refused = {world.segments[0].objects[0].key}
    key = world.lose(world.segments[4])
    world.pass_ms(FIRST_WAIT_MS)
    for _ in range(PASS_MS // SECOND_MS):
        world.pass_ms(SECOND_MS)
    value_of = world.metrics.registry.get_sample_value

    assert world.found() == [(key, AnomalyKind.MISSING)]
    assert (world.checked(), world.store_of_objects.refused_count) == (4, 3)
    assert value_of("rlm_scrub_skipped_segments_total") == 1
    assert value_of("rlm_scrub_pass_ended_timestamp_seconds") != 0


def test_scrub_when_the_store_answers_again_then_checks_what_it_had_refused() -> None:
    world = ScrubbedWorld()
    world.store_of_objects.refused = {world.segments[0].objects[0].key}
    world.pass_ms(FIRST_WAIT_MS)
    for _ in range(6):
        world.pass_ms(SECOND_MS)
    before = world.checked()
    world.store_of_objects.refused = set()

    for _ in range(60):
        world.pass_ms(SECOND_MS)

    assert (before, world.checked()) == (4, 5)


def test_scrub_when_steps_are_shorter_than_a_segment_takes_then_loses_nothing_of_its_rate() -> None:
    world = ScrubbedWorld(replace(LIMITS, segments_per_second=1))
    world.pass_ms(FIRST_WAIT_MS - SECOND_MS)
    world.pass_ms(SECOND_MS)
    for _ in range(5):
        world.pass_ms(800)

    assert world.checked() == 5


class SetLater(Event):
    """A stop event that is set from request number `asked` on."""

    def __init__(self, *, asked: int) -> None:
        super().__init__()
        self._left = asked

    def is_set(self) -> bool:
        self._left -= 1
        return self._left <= 0


def test_scrub_when_the_process_stops_during_a_check_then_no_failure_and_nothing_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = ScrubbedWorld(stopping=SetLater(asked=3))

    with caplog.at_level(logging.INFO, "rlm.tasks.integrity.scrub"):
        world.pass_ms(FIRST_WAIT_MS)

    assert world.checked() == 0
    assert world.found() == []
    assert not caplog.records
