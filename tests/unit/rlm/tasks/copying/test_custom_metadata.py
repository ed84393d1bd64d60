"""Custom metadata (KIP-917): bytes of a remote storage manager, kept with the segment's record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.tasks.context.ports import Ports
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject
from rsm.spi import CopiedSegment, CopyAttempt
from rsm.storage.chunk_storage import ChunkStorage
from tests.fakes.process import FakeSystems, Process
from tests.fakes.world import KEEP_REMOTE, TIP, World

WRITE = "write .log"
KAFKAS_LIMIT_BYTES = 128
MINUTE_MS = 60_000


class CustomStorage(SegmentStorageManager):
    """Returns custom metadata for copies of partition 0, and records what it gets for deletions."""

    def __init__(self, storage: ChunkStorage, given: CopiedSegment) -> None:
        """Take `given`, which copies return in addition to the written metadata."""
        super().__init__(storage=storage, keys=ObjectKeys(), layouts=(RawLayout(),))
        self._given = given
        self.deleted: list[bytes] = []

    def copy_log_segment_data(
        self, metadata: RemoteLogSegmentMetadata, data: LogSegmentData, attempt: CopyAttempt
    ) -> CopiedSegment:
        copied = super().copy_log_segment_data(metadata, data, attempt)
        if metadata.topic_id_partition.partition:
            return copied
        return replace(self._given, objects=(*copied.objects, *self._given.objects))

    def delete_log_segment_data(self, metadata: RemoteLogSegmentMetadata) -> None:
        self.deleted.append(metadata.custom_metadata)
        super().delete_log_segment_data(metadata)


class CustomProcess(Process):
    """A manager whose remote storage manager returns custom metadata of Kafka's maximum size."""

    given = CopiedSegment(objects=(), custom_metadata=b"m" * KAFKAS_LIMIT_BYTES)

    def _make_ports(self, external: FakeSystems) -> Ports:
        self.storage = CustomStorage(self.make_objects(external), self.given)
        return replace(super()._make_ports(external), storage=self.storage)


class TalkativeProcess(CustomProcess):
    """A manager whose remote storage manager returns one byte more than the maximum."""

    given = CopiedSegment(objects=(), custom_metadata=b"m" * (KAFKAS_LIMIT_BYTES + 1))


class UnplannedProcess(CustomProcess):
    """A manager whose remote storage manager returns an unplanned object."""

    given = CopiedSegment(objects=(StoredObject(key="unplanned.log"),))


def copy_blocked(process: Process, tip: TopicIdPartition = TIP) -> str | None:
    (blocked,) = [each.copy_blocked for each in process.reports if each.topic_id_partition == tip]
    return None if blocked is None else blocked.reason


def test_copy_when_custom_metadata_is_given_then_kept_and_given_back_to_the_deletion() -> None:
    world = World(policy=replace(KEEP_REMOTE, retention_ms=10 * MINUTE_MS))
    world.segments(1)
    process = world.start(process_type=CustomProcess)
    world.settle()
    (finished,) = world.records(SegmentState.COPY_SEGMENT_FINISHED)
    world.clock.advance(20 * MINUTE_MS)

    world.settle()

    assert isinstance(process, CustomProcess)
    assert finished.metadata.custom_metadata == CustomProcess.given.custom_metadata
    assert (world.stored(), world.object_names()) == ([], [])
    assert set(process.storage.deleted) == {CustomProcess.given.custom_metadata}


@pytest.mark.parametrize("process_type", [TalkativeProcess, UnplannedProcess])
def test_copy_when_the_answer_does_not_fit_then_deleted_and_only_that_partition_stops(
    process_type: type[CustomProcess],
) -> None:
    """Scenario 15: one attempt, no object of it left, nothing after it copied, and a reason."""
    world = World(partitions=2)
    stopped, other = world.tips
    for tip in world.tips:
        world.segments(2, tip=tip)
    process = world.start(process_type=process_type)

    world.settle()
    for _ in range(10):
        world.clock.advance(120_000)
        world.cycle()

    assert (world.stored(tip=stopped), world.stored(tip=other)) == ([], [(0, 10), (10, 20)])
    assert (copy_blocked(process, stopped), copy_blocked(process, other)) == ("stopped", None)
    assert process.effects.performed.count(WRITE) == 3
    assert len(world.object_names()) == 4
    assert world.leader(stopped).log_start_offset == 0
    assert world.audit.violations == []
    assert isinstance(process, CustomProcess)
    assert process.storage.deleted[0] == process.given.custom_metadata


def test_copying_when_stopped_and_the_lead_comes_back_then_tried_again() -> None:
    """As in Kafka, where the next leadership begins a new copy task."""
    world = World(brokers=2)
    world.segments(1)
    process = world.start(process_type=TalkativeProcess)
    world.settle()
    world.elect(2)
    world.settle()
    world.elect(1)

    world.settle()

    assert process.effects.performed.count(WRITE) == 2
    assert world.object_names() == []


def test_copying_when_stopped_and_another_process_may_do_it_then_continues() -> None:
    world = World()
    world.segments(2)
    world.start(process_type=TalkativeProcess)
    world.settle()
    world.restart()

    world.settle()

    assert world.stored() == [(0, 10), (10, 20)]
