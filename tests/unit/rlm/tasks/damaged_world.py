"""A partition with three stored segments, whose objects are removed, changed and restored."""

from __future__ import annotations

from dataclasses import replace

from rlmm.events.anomaly import AnomalyReported
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import ByteRange, OffsetRange
from tests.fakes.invariants import first_unreadable
from tests.fakes.process import Process
from tests.fakes.world import KEEP_REMOTE, TIP, World

MINUTE_MS = 60_000
FINISHED = SegmentState.COPY_SEGMENT_FINISHED
KEEP_LOCAL = replace(KEEP_REMOTE, local_retention_ms=-1)


class DamagedWorld(World):
    """Three stored segments, of which the broker has all or none."""

    def __init__(self, *, is_local: bool, process_type: type[Process] = Process) -> None:
        policy = KEEP_LOCAL if is_local else KEEP_REMOTE
        super().__init__(policy=policy, process_type=process_type)
        self.segments(3)
        self.produce(3)
        self.process = self.start()
        self.settle()
        self.copied = self.finished()

    def finished(self) -> list[RemoteLogSegmentMetadata]:
        return [record.metadata for record in self.records(FINISHED)]

    def key_of(self, number: int) -> str:
        return self.copied[number].objects[0].key

    def content_of(self, number: int) -> bytes:
        whole = ByteRange(start_position=0, end_position=1 << 20)
        return self.objects.read_range(self.key_of(number), whole)

    def lose(self, number: int) -> bytes:
        """Delete an object of a segment, and report that as a reader does; return its content."""
        content = self.content_of(number)
        self.damaged_objects.add(self.key_of(number))
        self.objects.delete(self.key_of(number))
        self.report(number, AnomalyKind.MISSING)
        return content

    def give_back(self, number: int, content: bytes) -> None:
        self.objects.create_with_content(self.key_of(number), BytesSource(content=content))

    def flip_bit(self, number: int) -> None:
        """Change a bit of the object, and report that as a reader does."""
        content = self.content_of(number)
        self.damaged_objects.add(self.key_of(number))
        self.objects.delete(self.key_of(number))
        self.give_back(number, bytes([content[0] ^ 1]) + content[1:])
        self.report(number, AnomalyKind.CORRUPT)

    def report(self, number: int, kind: AnomalyKind) -> None:
        now_ms = self.clock.wall_ms()
        found = Anomaly(
            segment=self.copied[number].segment_id.id,
            object_key=self.key_of(number),
            kind=kind,
            first_ms=now_ms,
            last_ms=now_ms,
            attempts=1,
            lost=(self.copied[number].offsets,) if kind is AnomalyKind.LOSS_ACCEPTED else (),
        )
        event = AnomalyReported(event_id=self.new_id(), topic_id_partition=TIP, anomaly=found)
        assert self.metadata.publish(event).accepted

    def pass_cycles(self, count: int = 8) -> None:
        for _ in range(count):
            self.clock.advance(MINUTE_MS)
            self.cycle()

    def stored_as(self, number: int) -> SegmentState:
        record = self.metadata.segment(self.copied[number].segment_id)
        assert record is not None
        return record.metadata.state

    def unreadable(self) -> str | None:
        """Return what stops a reader of the three segments from the store alone, or None."""
        return first_unreadable(
            self, TIP, OffsetRange(start_offset=0, end_offset=30), self.leader()
        )
