from __future__ import annotations

from uuid import UUID

from rlm.cli.reading.explain import explanation_lines
from rlm.cli.reading.stored_objects import AS_RECORDED, MISSING, StoredObjects, states_of
from rlm.status.explanation import ContainingSegment, OffsetExplanation
from rlm.tasks.context.attempt import BoundedAttempt
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import anomaly
from tests.remote_world import RemoteWorld, segment_of
from tests.unit.rlm.cli.stated_managers import TIP


def test_objects_when_one_is_gone_then_both_are_named_with_their_state() -> None:
    world = RemoteWorld()
    world.claim()
    metadata = world.store(segment_of(0))
    log, companion = (stored.key for stored in metadata.objects)
    world.objects.delete(log)
    deadline_ms = world.clock.monotonic_ms() + 1_000

    found = states_of(
        world.storage, [metadata], BoundedAttempt(world.clock, deadline_ms, lambda: False)
    )

    assert found == {log: MISSING, companion: AS_RECORDED}


def test_lines_when_an_object_is_missing_then_say_so_and_since_when() -> None:
    segment = ContainingSegment(
        segment_id=UUID(int=1),
        state="COPY_SEGMENT_FINISHED",
        offsets=OffsetRange(start_offset=0, end_offset=100),
        readable=OffsetRange(start_offset=0, end_offset=100),
        size_bytes=9,
        max_timestamp_ms=0,
        state_since_ms=0,
        is_dead_lettered=False,
        object_keys=("0.log",),
    )
    found = OffsetExplanation(
        offset=5,
        location="remote",
        leader_epoch=1,
        log_start_offset=0,
        local_start_offset=100,
        high_watermark=200,
        segments=(segment,),
    )
    stored = StoredObjects(anomalies=(anomaly(key="0.log"),), states={"0.log": MISSING})

    lines = explanation_lines(TIP, found, stored)

    at = lines.index("    0.log")
    assert lines[at + 1] == "      in the store: missing"
    assert lines[at + 2].startswith("  anomaly missing since 1970")
    assert lines[at + 3] == "    0.log"
