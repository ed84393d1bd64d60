"""Leased data stays; a partition with a record of a newer version is not changed."""

from __future__ import annotations

from dataclasses import replace

from rlmm.events.read_lease import ReadLeaseTaken
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind, partition_key
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import OffsetRange
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process
from tests.fakes.world import KEEP_REMOTE, TIP, World

MINUTE_MS = 60_000
DELETE_STARTED = "publish DELETE_SEGMENT_STARTED"


def expired_world() -> tuple[World, Process]:
    """Return a world with three stored segments; without leases, the next cycle expires two."""
    world = World(policy=replace(KEEP_REMOTE, retention_ms=10 * MINUTE_MS))
    world.segments(2)
    process = world.start()
    world.settle()
    world.clock.advance(20 * MINUTE_MS)
    world.segments(1)
    return world, process


def take_lease(world: World, start: int, end: int, *, duration_ms: int = 60 * MINUTE_MS) -> None:
    lease = ReadLeaseTaken(
        event_id=world.new_id(),
        lease_id=world.new_id(),
        topic_id_partition=TIP,
        offsets=OffsetRange(start_offset=start, end_offset=end),
        duration_ms=duration_ms,
        holder="an audit",
    )
    assert world.metadata.publish(lease).accepted


def test_expiry_when_leased_then_waits_for_the_lease_to_expire() -> None:
    """R13: expiry continues by itself once the lease has ended by the brokers' clock."""
    world, _ = expired_world()
    take_lease(world, 15, 16)
    world.settle()
    while_leased = (world.stored(), world.state().log_start_offset)
    world.clock.advance(61 * MINUTE_MS)

    world.settle()
    world.settle()

    assert while_leased == ([(10, 20), (20, 30)], 15)
    assert world.state().log_start_offset == 30
    assert violations(world) + leftovers(world) == []


def test_deletion_when_leased_after_the_decision_then_the_objects_wait() -> None:
    """R13: a lease that precedes DELETE_SEGMENT_STARTED in the topic blocks the deletion."""
    world, process = expired_world()
    objects = {o.key for o in world.records()[0].metadata.objects}
    process.effects.before(DELETE_STARTED, lambda: take_lease(world, 0, 10))
    world.settle()
    while_leased = objects & set(world.object_names())
    world.clock.advance(61 * MINUTE_MS)

    world.settle()
    world.settle()

    assert while_leased == objects
    assert not objects & set(world.object_names())
    assert violations(world) == []


def test_partition_when_a_newer_version_wrote_of_it_then_is_left_alone() -> None:
    """R14: nothing is copied, trimmed or deleted until that record is gone."""
    world = World()
    key = partition_key(RecordKind.TRIM, TIP, world.new_id())
    world.topic.append(0, key, pb.MetadataEvent(min_fold_version=99).SerializeToString())
    world.segments(2)
    process = world.start()
    world.settle()
    while_newer = (world.stored(), world.state().trimmed_offset, list(process.effects.performed))

    world.topic.append(0, key, None)
    world.settle()

    assert while_newer[:2] == ([], None)
    assert not any(SegmentState.COPY_SEGMENT_STARTED.name in name for name in while_newer[2])
    assert world.stored() == [(0, 10), (10, 20)]
    assert violations(world) == []
