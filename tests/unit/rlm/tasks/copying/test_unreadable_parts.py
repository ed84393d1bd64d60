"""A part that cannot be read is reported, and the other segments are merged without it (PIP-76)."""

from __future__ import annotations

import pytest

from rlm.status.document import StreamReport
from rlmm.events.segment import SegmentEvent
from rlmm.state.anomalies import AnomalyKind
from rsm.segment.errors import RetriableError
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import ByteRange
from tests.fakes.invariants import violations
from tests.fakes.process import Process
from tests.unit.rlm.tasks.copying.test_merges import (
    MERGES,
    PARTS,
    RECORDS,
    Blocks,
    MergingWorld,
    counted,
    published,
)

MANY = 9
LOST = 1
LEFT_OUT = [(0, RECORDS), (RECORDS, 2 * RECORDS), (2 * RECORDS, MANY * RECORDS)]
LOG, COMPANION = 0, -1
CYCLES = 120


def key_of(world: MergingWorld, number: int, which: int) -> str:
    return world.parts[number].metadata.objects[which].key


def take(world: MergingWorld, number: int, which: int) -> bytes:
    """Delete an object of a part; return its content."""
    key = key_of(world, number, which)
    content = world.objects.read_range(key, ByteRange(start_position=0, end_position=1 << 20))
    world.damaged_objects.add(key)
    world.objects.delete(key)
    return content


def put(world: MergingWorld, number: int, which: int, content: bytes) -> None:
    world.objects.create_with_content(key_of(world, number, which), BytesSource(content=content))


def anomalies(world: MergingWorld) -> list[tuple[str, AnomalyKind]]:
    return [(each.object_key, each.kind) for each in world.state().anomalies]


def stream_report(world: MergingWorld) -> StreamReport:
    (report,) = world.process.reports
    assert report.stream is not None
    return report.stream


@pytest.mark.parametrize("which", [LOG, COMPANION])
def test_part_when_an_object_is_lost_then_reported_and_the_others_are_merged(which: int) -> None:
    world = MergingWorld(parts=MANY)
    take(world, LOST, which)

    world.pass_cycles()

    assert anomalies(world) == [(key_of(world, LOST, which), AnomalyKind.MISSING)]
    assert world.stored() == LEFT_OUT
    assert counted(world.process, "rlm_stream_merge_errors_total") == 1
    assert violations(world) == []


@pytest.mark.parametrize("which", [LOG, COMPANION])
def test_part_when_an_object_is_corrupt_then_reported_and_the_others_are_merged(
    which: int,
) -> None:
    world = MergingWorld(parts=MANY)
    content = take(world, LOST, which)
    put(world, LOST, which, content[:-1] + bytes([content[-1] ^ 1]))

    world.pass_cycles()

    assert anomalies(world) == [(key_of(world, LOST, which), AnomalyKind.CORRUPT)]
    assert world.stored() == LEFT_OUT
    assert counted(world.process, "rlm_stream_merge_errors_total") == 1


def test_part_when_its_companion_is_lost_then_no_byte_of_a_log_is_written() -> None:
    world = MergingWorld(parts=MANY)
    take(world, MANY - 1, COMPANION)

    world.cycle()

    assert published(world.process) == []
    assert not any(name.startswith("write ") for name in world.process.effects.performed)


def test_part_when_several_companions_are_lost_then_one_attempt_reports_all() -> None:
    world = MergingWorld(parts=MANY)
    for number in (0, 1, 3):
        take(world, number, COMPANION)

    world.pass_cycles()

    assert len(anomalies(world)) == 3
    assert counted(world.process, "rlm_stream_merge_errors_total") == 1
    assert (4 * RECORDS, MANY * RECORDS) in world.stored()


def test_part_when_its_object_is_restored_then_it_is_merged() -> None:
    world = MergingWorld()
    content = take(world, LOST, COMPANION)
    world.pass_cycles()
    while_lost = len(world.stored())
    put(world, LOST, COMPANION, content)

    world.pass_cycles(16)

    assert while_lost == PARTS
    assert anomalies(world) == []
    assert world.stored() == [(0, PARTS * RECORDS)]
    assert world.broken() == []


def test_part_when_it_is_deleted_during_the_merge_then_nothing_is_reported() -> None:
    world = MergingWorld(parts=MANY)

    key = key_of(world, LOST, LOG)

    def delete() -> None:
        metadata = world.parts[LOST].metadata
        (task,) = world.process.leadership.led()
        started = metadata.in_state(
            SegmentState.DELETE_SEGMENT_STARTED,
            event_timestamp_ms=world.clock.wall_ms(),
            writer=task.lead.writer,
        )
        event = SegmentEvent(
            event_id=world.new_id(), metadata=started, expected_state=metadata.state
        )
        if world.metadata.publish(event).accepted:
            world.objects.delete(key)

    world.process.effects.after("publish COPY_SEGMENT_STARTED", delete)

    world.cycle()

    assert not world.objects.exists(key)
    assert anomalies(world) == []
    assert counted(world.process, "rlm_stream_merge_errors_total") == 0


def test_part_when_its_layout_is_unknown_then_the_others_are_merged_and_the_report_says_so() -> (
    None
):
    world = MergingWorld(process_type=Blocks)
    world.process.effects.crashed = True
    world.settings = world.plain
    plain = world.start(process_type=Process)
    for _ in range(PARTS):
        world.stream_part(plain)
    plain.effects.crashed = True
    world.settings = MERGES
    world.process = world.start(process_type=Process)

    world.pass_cycles()

    unknown = [(number * RECORDS, (number + 1) * RECORDS) for number in range(PARTS)]
    assert world.stored() == [*unknown, (PARTS * RECORDS, 2 * PARTS * RECORDS)]
    assert anomalies(world) == []
    failure = stream_report(world).merge_failure
    assert failure is not None
    assert (failure.cause, failure.is_final) == ("the segment's layout is unknown", True)


def test_merges_when_they_fail_then_the_report_says_why_until_one_succeeds() -> None:
    world = MergingWorld()
    world.process.effects.fail("write .log", RetriableError("store refuses"))

    world.cycle()
    failing = stream_report(world).merge_failure
    world.process.is_store_reachable = False
    world.cycle()
    while_away = stream_report(world).merge_failure
    world.process.is_store_reachable = True
    world.cycle()

    assert failing is not None
    assert (failing.cause, failing.attempts) == ("store refuses", 1)
    assert while_away is None  # nothing is merged
    assert stream_report(world).merge_failure is None


def test_merges_when_they_fail_again_and_again_then_pauses_grow_to_an_hour() -> None:
    """Each attempt can read and write as much as the largest segment."""
    world = MergingWorld()
    world.process.effects.fail("write .log", RetriableError("store refuses"), times=999)
    for _ in range(CYCLES):
        world.clock.advance(600_000)
        world.cycle()

    errors = counted(world.process, "rlm_stream_merge_errors_total")

    assert CYCLES // 6 <= errors <= CYCLES // 6 + 14
