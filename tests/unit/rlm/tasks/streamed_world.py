"""A partition with three streamed segments, whose topic is no longer streamed."""

from __future__ import annotations

from rlmm.spi import SegmentRecord
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.fakes.invariants import first_unreadable, leftovers, violations
from tests.fakes.process import Process
from tests.fakes.world import TIP, World
from tests.unit.rlm.tasks.copying.test_streams import SEGMENTS, STREAMS, run

FINISHED = SegmentState.COPY_SEGMENT_FINISHED
STREAMED_COUNT = 3
_RECORDS = 15


class StreamedWorld(World):
    """One broker, which leads. The streamed segments begin and end within files of its log."""

    def __init__(self, *, process_type: type[Process] = Process) -> None:
        super().__init__(policy=STREAMS, process_type=process_type)
        self.process = self.start()
        for _ in range(STREAMED_COUNT):
            self.produce(10)
            self.roll()
            self.produce(5)
            run(self, self.process)
        self.streamed = self.records(FINISHED)
        self.set_policy(SEGMENTS)
        self.cycle()

    def pass_cycles(self, count: int = 12) -> None:
        for _ in range(count):
            self.cycle()

    def left(self) -> list[SegmentRecord]:
        """Return the streamed segments that are still finished."""
        known = {each.metadata.segment_id for each in self.streamed}
        return [each for each in self.records(FINISHED) if each.metadata.segment_id in known]

    def broken(self) -> list[str]:
        """Return what stops a reader of the store alone, and all violations and leftovers."""
        stored = OffsetRange(start_offset=0, end_offset=STREAMED_COUNT * _RECORDS)
        unreadable = first_unreadable(self, TIP, stored, self.leader())
        return [*filter(None, [unreadable]), *violations(self), *leftovers(self)]
