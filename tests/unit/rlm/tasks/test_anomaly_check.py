from __future__ import annotations

from threading import Event
from uuid import UUID, uuid4

import pytest

from rlm.tasks.anomaly_check import AnomalyCheck
from rlm.tasks.ports import Ports
from rlmm.anomaly import Anomaly, AnomalyKind, AnomalyReported
from rlmm.events import SegmentEvent
from rsm.segment.metadata import SegmentState
from tests.unit.rlm.remote_read.remote_world import TIP, WHOLE, WRITER, RemoteWorld, segment_of

MINUTE_MS = 60_000


class CheckedWorld(RemoteWorld):
    """One stored segment, and a manager that leads its partition."""

    def __init__(self) -> None:
        super().__init__()
        self.claim()
        self.segment = self.store(segment_of(0))
        self.key = self.segment.objects[0].key
        self.right = self.objects.read_range(self.key, WHOLE)
        ports = object.__new__(Ports)
        for name in ("metadata", "storage", "clock"):
            object.__setattr__(ports, name, getattr(self, name))
        object.__setattr__(ports, "new_id", uuid4)
        self.check = AnomalyCheck(ports, led=lambda: (TIP,), stopping=Event())

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
        """Open anomalies after one more look of the manager."""
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
    world.rewrite(world.key, bytes([world.right[0] ^ 1]) + world.right[1:])
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
