from __future__ import annotations

import logging
from dataclasses import replace
from threading import Event
from uuid import UUID, uuid4

import pytest

from rlm.tasks.context.log_once import LogOnce
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.integrity.anomaly_check import AnomalyCheck
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.events.anomaly import ANOMALIES_MAX_COUNT, AnomalyReported, clear_anomaly
from rlmm.events.segment import SegmentEvent
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rsm.segment.errors import RetriableError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkInfo
from rsm.storage.memory import MemoryChunkStorage
from tests.log_records import message_of
from tests.remote_world import TIP, WHOLE, WRITER, RemoteWorld, segment_of

MINUTE_MS = 60_000


class CountingStorage(MemoryChunkStorage):
    """Counts the bytes that were read, and refuses `info` for some objects."""

    def __init__(self) -> None:
        super().__init__(wall_ms=lambda: 0)
        self.refused: set[str] = set()
        self.read_bytes = 0

    def info(self, name: str) -> ChunkInfo:
        if name in self.refused:
            raise RetriableError("the store refuses", name=name)
        return super().info(name)

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        content = super().read_range(name, positions)
        self.read_bytes += len(content)
        return content


def led_task(tip: TopicIdPartition) -> PartitionTask:
    task = PartitionTask(PartitionLead(topic_id_partition=tip, writer=WRITER), LogOnce())
    task.leads = True
    return task


class CheckedWorld(RemoteWorld):
    """One stored segment, and a manager that leads its partition."""

    def __init__(self) -> None:
        self.counted = CountingStorage()
        super().__init__(self.counted)
        self.led: tuple[PartitionTask, ...] = (led_task(TIP),)
        self.throttled_ms = 0
        self.claim()
        self.segment = self.store(segment_of(0))
        self.key = self.segment.objects[0].key
        self.right = self.objects.read_range(self.key, WHOLE)
        self.counted.read_bytes = 0
        ports = object.__new__(Ports)
        for name in ("metadata", "storage", "clock"):
            object.__setattr__(ports, name, getattr(self, name))
        object.__setattr__(ports, "new_id", uuid4)
        self.check = AnomalyCheck(
            ports,
            led=lambda: self.led,
            stopping=Event(),
            throttle=CopyThrottle(
                self.clock, bytes_per_second=1 << 20, sharers=1, waited=self._wait
            ),
        )

    def _wait(self, duration_ms: int) -> None:
        self.throttled_ms += duration_ms

    def flip_bit(self) -> None:
        self.rewrite(self.key, bytes([self.right[0] ^ 1]) + self.right[1:])

    def clear(self) -> None:
        """Clear the anomaly like a reader that could read one range again."""
        for each in self.metadata.partition_state(TIP).anomalies:
            clear_anomaly(self.metadata, TIP, each.id)
        assert self.metadata.caught_up(TIP)

    def is_damaged(self, segment: RemoteLogSegmentId | None = None) -> bool:
        segment_id = segment or self.segment.segment_id
        return any(segment_id.id in task.damage.damaged for task in self.led)

    def report(self, kind: AnomalyKind) -> None:
        now_ms = self.clock.wall_ms()
        found = Anomaly(
            segment=self.segment.segment_id.id,
            object_key=self.key,
            kind=kind,
            first_ms=now_ms,
            last_ms=now_ms,
            attempts=1,
        )
        event = AnomalyReported(event_id=UUID(int=0xA1), topic_id_partition=TIP, anomaly=found)
        assert self.metadata.publish(event).accepted

    def left(self) -> int:
        """Return the open anomalies after one more check of the manager."""
        self.check.step()
        assert self.metadata.caught_up(TIP)
        return len(self.metadata.partition_state(TIP).anomalies)


@pytest.fixture
def world() -> CheckedWorld:
    return CheckedWorld()


@pytest.mark.parametrize("kind", AnomalyKind)
def test_check_when_the_object_is_whole_then_clears_the_report(
    world: CheckedWorld, kind: AnomalyKind
) -> None:
    """A gateway's report alone proves nothing."""
    world.report(kind)

    assert world.left() == 0


def test_check_when_the_object_is_missing_then_stays_until_it_is_back(
    world: CheckedWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.objects.delete(world.key)
    world.report(AnomalyKind.MISSING)
    while_missing = []
    for _ in range(3):
        while_missing.append(world.left())
        world.clock.now_ms += MINUTE_MS

    world.rewrite(world.key, world.right)

    assert while_missing == [1, 1, 1]
    assert world.left() == 0
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == 1


def test_check_when_a_bit_was_flipped_then_reads_the_object_and_keeps_the_report(
    world: CheckedWorld,
) -> None:
    world.flip_bit()
    world.report(AnomalyKind.CORRUPT)

    assert world.left() == 1


def test_check_when_its_segment_is_being_deleted_then_clears_the_report(
    world: CheckedWorld,
) -> None:
    world.objects.delete(world.key)
    world.report(AnomalyKind.MISSING)
    started = world.segment.in_state(
        SegmentState.DELETE_SEGMENT_STARTED, event_timestamp_ms=1, writer=WRITER
    )
    world.metadata.publish(
        SegmentEvent(
            event_id=UUID(int=0xA2),
            metadata=started,
            expected_state=SegmentState.COPY_SEGMENT_FINISHED,
        )
    )

    assert world.left() == 0


@pytest.mark.parametrize("kind", [AnomalyKind.MISSING, AnomalyKind.CORRUPT])
def test_check_when_a_reader_of_another_place_cleared_it_then_on_record_again(
    world: CheckedWorld, kind: AnomalyKind
) -> None:
    """A readable or cached range does not prove that the object is whole."""
    if kind is AnomalyKind.MISSING:
        world.objects.delete(world.key)
    else:
        world.flip_bit()
    world.report(kind)
    assert world.left() == 1
    world.clear()

    left = world.left()

    assert (left, world.is_damaged()) == (1, True)


def test_check_when_a_missing_object_is_back_and_a_reader_cleared_it_then_done_at_once(
    world: CheckedWorld,
) -> None:
    world.objects.delete(world.key)
    world.report(AnomalyKind.MISSING)
    world.check.step()
    world.rewrite(world.key, world.right)
    world.clear()

    left = world.left()

    assert (left, world.is_damaged()) == (0, False)


def test_check_when_the_lead_moves_then_forgets_what_it_found(world: CheckedWorld) -> None:
    world.objects.delete(world.key)
    world.report(AnomalyKind.MISSING)
    world.check.step()
    before = world.is_damaged()
    world.led = ()

    world.check.step()

    assert (before, world.is_damaged()) == (True, False)


def test_check_when_a_whole_object_is_reported_again_then_not_read_again_within_an_hour(
    world: CheckedWorld,
) -> None:
    """Anyone who may write the record could make the manager read all day."""
    world.report(AnomalyKind.CORRUPT)
    world.check.step()
    once = world.counted.read_bytes
    for _ in range(5):
        world.report(AnomalyKind.CORRUPT)
        world.clock.now_ms += MINUTE_MS
        world.check.step()
    within_the_hour = world.counted.read_bytes
    world.clock.now_ms += 60 * MINUTE_MS

    left = world.left()

    assert once > 0
    assert (within_the_hour, world.counted.read_bytes, left) == (once, 2 * once, 0)


def test_check_when_it_reads_then_at_the_rate_of_the_scrub(world: CheckedWorld) -> None:
    world.report(AnomalyKind.CORRUPT)

    world.check.step()

    assert world.throttled_ms > 0


def test_check_when_a_partition_has_no_room_then_others_are_known_and_it_is_logged_once(
    world: CheckedWorld, caplog: pytest.LogCaptureFixture
) -> None:
    other = replace(TIP, partition=TIP.partition + 1)
    world.claim(partition=other)
    elsewhere = world.store(segment_of(0), partition=other)
    neighbour = world.store(segment_of(0))
    world.led = (led_task(TIP), led_task(other))
    for segment in (world.segment, neighbour, elsewhere):
        world.objects.delete(segment.objects[0].key)
    world.report(AnomalyKind.MISSING)
    unknown = world.store(segment_of(200))
    world.counted.refused = {unknown.objects[0].key}
    world.fill_anomalies(unknown.segment_id.id, count=ANOMALIES_MAX_COUNT - 1)
    world.record_anomaly(
        Anomaly(
            segment=elsewhere.segment_id.id,
            object_key=elsewhere.objects[0].key,
            kind=AnomalyKind.MISSING,
            first_ms=1,
            last_ms=1,
            attempts=1,
        ),
        other,
    )

    for _ in range(3):
        world.check.step()
        world.clock.now_ms += MINUTE_MS

    logged = [message_of(each) for each in caplog.records if each.levelno == logging.WARNING]
    assert world.is_damaged()
    assert world.is_damaged(elsewhere.segment_id)
    assert logged.count("cannot record a damaged object") == 1
