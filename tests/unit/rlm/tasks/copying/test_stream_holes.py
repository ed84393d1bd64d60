"""A stream fills a hole below stored records, and ends where these begin."""

from __future__ import annotations

from dataclasses import replace

from rlm.facts.local_log import LogPosition
from rlm.tasks.context.deletion_start import start_deletion
from rsm.segment.metadata import SegmentState
from tests.fakes.process import Process
from tests.fakes.world import TIP, World
from tests.unit.rlm.tasks.copying.test_streams import STREAMS, run


class Holed:
    """Three stored segments of 10 records, of which the first is deleted."""

    def __init__(self) -> None:
        self.world = World(policy=STREAMS)
        process = self.world.start()
        for _ in range(3):
            self.world.produce(10)
            run(self.world, process)
        first = self.world.records(SegmentState.COPY_SEGMENT_FINISHED)[0].metadata
        (task,) = process.leadership.led()
        start_deletion(process.ports, first, task.lead.writer)
        self.process: Process = self.world.restart()


def test_stream_when_records_are_stored_above_then_ends_where_they_begin() -> None:
    holed = Holed()

    for _ in range(3):
        run(holed.world, holed.process)

    assert holed.world.stored() == [(0, 10), (10, 20), (20, 30)]


def test_stream_when_records_follow_the_stored_ones_then_continues_there() -> None:
    holed = Holed()
    holed.world.produce(5)

    for _ in range(3):
        run(holed.world, holed.process)

    assert holed.world.stored() == [(0, 10), (10, 20), (20, 30), (30, 35)]


def test_stream_when_a_batch_reaches_across_the_stored_begin_then_it_is_stored_all_the_same() -> (
    None
):
    """Otherwise the batch's records below that begin would never be stored."""
    world = World(policy=STREAMS)
    world.produce(10)
    process = world.start()
    world.cycle()
    (task,) = process.leadership.led()
    assert task.streaming.permit is not None
    permit = replace(task.streaming.permit, stored_from_offset=3)
    process.effects.after("offsets", lambda: world.produce(5))

    process.streams.offer(task, permit, LogPosition(offset=0), 0)

    assert world.stored() == [(0, 15)]
    assert process.copy_failure(TIP) is None
