"""Stored objects are removed and restored, and readers report them, correctly or not."""

from __future__ import annotations

from rlmm.events.anomaly import AnomalyReported
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from tests.simulation.actions import Stage

_FALSE_REPORTS = 0.2  # of all reports
_RETURNS = 0.3  # while an object is away


def damage_object(stage: Stage) -> str | None:
    """Remove an object of a finished segment, or restore a removed one.

    Does nothing within a cycle or a job, so that a manager's last check of objects still holds.
    """
    world, random = stage.world, stage.random
    if stage.is_nested():
        return None
    if world.away and random.random() < _RETURNS:
        name = random.choice(sorted(world.away))
        return f"{name} is {'back' if world.give_back(name) else 'lost'}"
    finished = world.records(SegmentState.COPY_SEGMENT_FINISHED, tip=stage.tip)
    found = [
        (record.metadata, stored.key)
        for record in finished
        for stored in record.metadata.objects
        if world.objects.exists(stored.key)
    ]
    if not found:
        return None
    metadata, name = random.choice(found)
    is_whole = random.random() < _FALSE_REPORTS
    if not is_whole:
        world.take_object(name)
    _report(stage, stage.tip, metadata, name)
    return f"{name} {'is reported though it is whole' if is_whole else 'is away'}"


def _report(
    stage: Stage, tip: TopicIdPartition, metadata: RemoteLogSegmentMetadata, name: str
) -> None:
    now_ms = stage.world.clock.wall_ms()
    anomaly = Anomaly(
        segment=metadata.segment_id.id,
        object_key=name,
        kind=AnomalyKind.MISSING,
        first_ms=now_ms,
        last_ms=now_ms,
        attempts=1,
    )
    event = AnomalyReported(event_id=stage.world.new_id(), topic_id_partition=tip, anomaly=anomaly)
    assert stage.world.metadata.publish(event).accepted
