"""Scenario 15: what a store's answer adds to a segment's record is bounded, as in Kafka."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rlm.tasks.copy_lane import CopyLanes
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.spi import CopyAttempt
from tests.twins.process import Outside, Process, ProcessSettings
from tests.twins.seams import SeamChunkStorage
from tests.twins.world import TIP, World

WRITE = "write .log"
KAFKAS_LIMIT_BYTES = 128


class TalkativeStorage(SegmentStorageManager):
    """Answers with one object more than was named, for partition 0."""

    def copy_log_segment_data(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData, attempt: CopyAttempt
    ) -> tuple[StoredObject, ...]:
        objects = super().copy_log_segment_data(metadata, data, attempt)
        if metadata.topic_id_partition.partition:
            return objects
        return (*objects, StoredObject(key="k" * KAFKAS_LIMIT_BYTES))


class TalkingStore(Process):
    """A manager whose store says more of partition 0 than is allowed."""

    def __init__(
        self, outside: Outside, settings: ProcessSettings, witness: Callable[..., None]
    ) -> None:
        self._objects = outside.objects
        super().__init__(outside, settings, witness)

    def make_copies(self) -> CopyLanes:
        storage = TalkativeStorage(
            storage=SeamChunkStorage(self._objects, self.effects),
            keys=ObjectKeys(),
            layouts=(RawLayout(),),
        )
        return CopyLanes(
            replace(self.ports, storage=storage),
            lanes=self.make_lanes("copy"),
            leadership=self.leadership,
            metrics=self.metrics,
            stopping=self.stopping,
            limits=replace(self.copy_limits(), answer_max_bytes=KAFKAS_LIMIT_BYTES),
        )


def copy_held(process: Process, tip: TopicIdPartition = TIP) -> str | None:
    (held,) = [each.copy_held for each in process.reports if each.topic_id_partition == tip]
    return None if held is None else held.reason


def test_copy_when_the_answer_is_too_large_then_deleted_and_only_that_partition_stops() -> None:
    """One attempt, no object of it left, nothing behind it copied, and the reason is shown."""
    world = World(partitions=2)
    talked_of, other = world.tips
    for tip in world.tips:
        world.segments(2, tip=tip)
    process = world.start(process_type=TalkingStore)

    world.settle()
    for _ in range(10):
        world.clock.advance(120_000)
        world.cycle()

    assert (world.stored(tip=talked_of), world.stored(tip=other)) == ([], [(0, 10), (10, 20)])
    assert (copy_held(process, talked_of), copy_held(process, other)) == ("stopped", None)
    assert process.effects.performed.count(WRITE) == 3
    assert len(world.object_names()) == 4
    assert world.leader(talked_of).log_start_offset == 0
    assert world.audit.violations == []


def test_copying_when_stopped_and_the_lead_comes_back_then_tried_again() -> None:
    """As in Kafka, where the next leadership begins a new copy task."""
    world = World(brokers=2)
    world.segments(1)
    process = world.start(process_type=TalkingStore)
    world.settle()
    world.elect(2)
    world.settle()
    world.elect(1)

    world.settle()

    assert process.effects.performed.count(WRITE) == 2
    assert world.object_names() == []


def test_copying_when_stopped_and_another_process_may_do_it_then_goes_on() -> None:
    world = World()
    world.segments(2)
    world.start(process_type=TalkingStore)
    world.settle()
    world.restart()

    world.settle()

    assert world.stored() == [(0, 10), (10, 20)]
