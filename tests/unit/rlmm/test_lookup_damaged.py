"""The lookup where some of the segments that hold the offset are damaged."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from rlmm.events.anomaly import AnomalyReported
from rlmm.lookup import NotStored, locate, locate_around, locate_sound
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rsm.segment.coverage import StoredRange
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import RemoteLogSegmentMetadata
from tests.metadata_builder import event_id
from tests.remote_world import TIP, RemoteWorld, segment_of


def report(world: RemoteWorld, segment: RemoteLogSegmentMetadata) -> None:
    anomaly = Anomaly(
        segment=segment.segment_id.id,
        object_key=segment.objects[0].key,
        kind=AnomalyKind.MISSING,
        first_ms=1,
        last_ms=1,
        attempts=1,
    )
    event = AnomalyReported(event_id=event_id(), topic_id_partition=TIP, anomaly=anomaly)
    assert world.metadata.publish(event).accepted


def located(world: RemoteWorld, offset: int, failed: Collection[UUID] = ()) -> object:
    """Return the metadata of the segment that answers, or why none does."""
    state = world.metadata.partition_state(TIP)
    found = locate_around(state, world.metadata, TIP, offset, failed)
    return found if isinstance(found, NotStored) else found.metadata


def test_locate_around_when_the_furthest_is_on_record_as_damaged_then_another_answers(
    world: RemoteWorld,
) -> None:
    world.claim()
    shorter = world.store(segment_of(0))
    longer = world.store(segment_of(0, batch_count=20))
    assert located(world, 50) == longer

    report(world, longer)

    assert located(world, 50) == shorter
    assert located(world, 150) == longer, "no other segment has the offset"


def test_locate_around_when_all_are_on_record_then_the_one_that_did_not_fail_just_now(
    world: RemoteWorld,
) -> None:
    """A record is only a report: the object may be back."""
    world.claim()
    shorter = world.store(segment_of(0))
    longer = world.store(segment_of(0, batch_count=20))
    report(world, shorter)
    report(world, longer)

    assert located(world, 50, failed=[longer.segment_id.id]) == shorter
    assert located(world, 50, failed=[shorter.segment_id.id]) == longer


def test_locate_around_when_all_are_on_record_and_none_failed_then_as_without_records(
    world: RemoteWorld,
) -> None:
    """Of two with equal ends, the one that begins last, as Kafka chooses."""
    world.claim()
    earlier = world.store(segment_of(0))
    later = world.store(segment_of(50, batch_count=5))
    report(world, earlier)
    report(world, later)

    assert located(world, 60) == later


def test_locate_sound_when_several_are_whole_then_the_one_that_reaches_furthest(
    world: RemoteWorld,
) -> None:
    world.claim()
    middle = world.store(segment_of(0, batch_count=15))
    world.store(segment_of(0))
    damaged = world.store(segment_of(0, batch_count=20))

    found = locate_sound(world.metadata, TIP, 50, [damaged.segment_id.id])

    assert found is not None
    assert found.metadata == middle


def test_locate_when_the_epochs_segment_is_cut_and_others_hold_it_then_the_furthest(
    world: RemoteWorld,
) -> None:
    """The lookup by epoch finds a segment of another history, which ends before the offset."""
    world.store(segment_of(0, batch_count=30), lineage=Lineage.of((0, 0), (1, 50), (2, 80)))
    lineage = Lineage.of((0, 0), (2, 50))
    world.claim(lineage)
    world.store(segment_of(0), lineage=lineage)
    furthest = world.store(segment_of(0, batch_count=11), lineage=lineage)

    found = locate(world.metadata, TIP, 85)

    assert isinstance(found, StoredRange)
    assert found.metadata == furthest
