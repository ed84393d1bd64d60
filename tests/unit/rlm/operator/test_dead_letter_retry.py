"""An operator finishes the deletion of a dead letter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.operator.dead_letter_retry import DeadLetterRetry
from rlmm.events.read_lease import ReadLeaseTaken
from rsm.segment.errors import FencedError, RetriableError
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.fakes.invariants import leftovers, violations
from tests.fakes.world import KEEP_REMOTE, TIP, World

MINUTE_MS = 60_000
REFUSED = RetriableError("store refuses")


def buried_world() -> tuple[World, DeadLetterRetry]:
    """Return a world with a dead letter about one segment; the store accepts deletions again."""
    world = World(policy=replace(KEEP_REMOTE, retention_ms=10 * MINUTE_MS))
    world.segments(2)
    process = world.start()
    world.settle()
    world.clock.advance(20 * MINUTE_MS)
    world.segments(1)
    process.effects.refuse("delete .log", world.records()[0].metadata.objects[0].key, REFUSED)
    world.settle()
    storage = world.start().ports.storage
    return world, DeadLetterRetry(world.metadata, storage, world.clock, world.new_id)


def test_dead_letter_when_retried_then_objects_go_and_the_deletion_has_finished() -> None:
    """Scenario 73: any process finishes it, and the metadata shows it to all."""
    world, retry = buried_world()
    (record,) = world.records(SegmentState.DELETE_SEGMENT_STARTED)

    retry.finish(record)

    assert world.records(SegmentState.DELETE_SEGMENT_STARTED) == []
    assert violations(world) + leftovers(world) == []


def test_dead_letter_when_retried_twice_then_the_second_changes_nothing() -> None:
    """Scenario 74: absent objects count as deleted."""
    world, retry = buried_world()
    (record,) = world.records(SegmentState.DELETE_SEGMENT_STARTED)
    retry.finish(record)

    with pytest.raises(FencedError):
        retry.finish(record)

    assert violations(world) + leftovers(world) == []


def test_dead_letter_when_somebody_reads_the_segment_then_stays_open() -> None:
    """R13."""
    world, retry = buried_world()
    (record,) = world.records(SegmentState.DELETE_SEGMENT_STARTED)
    lease = ReadLeaseTaken(
        event_id=world.new_id(),
        lease_id=world.new_id(),
        topic_id_partition=TIP,
        offsets=OffsetRange(start_offset=0, end_offset=1),
        duration_ms=MINUTE_MS,
        holder="a Spark job",
    )
    assert world.metadata.publish(lease).accepted

    with pytest.raises(RetriableError, match="a Spark job"):
        retry.finish(record)

    assert world.records(SegmentState.DELETE_SEGMENT_STARTED) == [record]
