"""A scrub finds missing objects of a store, and objects that no record names."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.topics.originals_mirror import StoredOriginals
from rlmm.events.segment import SegmentEvent
from rsm.layout.originals import OriginalSettings, OriginalsKeys
from rsm.segment.local_segment import BytesSource
from rsm.segment.ranges import OffsetRange
from tests.chaos.scrub import Scrubbed, scrub
from tests.fakes.world import TIP, World

NOW_MS = 1 << 60


def stored_world() -> World:
    """Return a world with three stored segments."""
    world = World()
    world.segments(3)
    world.start()
    world.settle()
    return world


def scrubbed(world: World, *, orphan_before_ms: int = NOW_MS) -> Scrubbed:
    world.metadata.refresh()
    return scrub(world.metadata, world.objects, [TIP], orphan_before_ms=orphan_before_ms)


def test_scrub_when_all_is_there_then_finds_nothing() -> None:
    """Scenario 104."""
    found = scrubbed(stored_world())

    assert found == Scrubbed(segments_count=3, streamed_count=0, objects_count=6, problems=())


def test_scrub_when_a_segment_was_streamed_then_counts_it() -> None:
    world = stored_world()
    first = world.records()[0].metadata
    streamed = replace(
        first,
        segment_id=replace(first.segment_id, id=UUID(int=99)),
        writer=replace(first.writer, incarnation=UUID(int=9)),
        layout="block_v2",
        objects=(),
    )
    assert world.metadata.publish(SegmentEvent(event_id=world.new_id(), metadata=streamed)).accepted

    found = scrubbed(world)

    assert (found.segments_count, found.streamed_count, found.problems) == (4, 1, ())


def test_scrub_when_an_object_is_missing_then_names_it() -> None:
    """Scenario 104."""
    world = stored_world()
    name = world.object_names()[0]
    world.objects.delete(name)

    found = scrubbed(world)

    assert found.problems == (f"{name} of a finished segment is missing",)


def test_scrub_when_nothing_names_an_object_then_is_found_after_the_grace() -> None:
    """Scenario 104."""
    world = stored_world()
    world.objects.create_with_content("stray", BytesSource(content=b"stray"))

    assert scrubbed(world).problems == ("stray is named by nothing",)
    assert scrubbed(world, orphan_before_ms=0).problems == ()


def test_scrub_when_originals_of_a_topic_are_there_then_are_no_orphans() -> None:
    """Scenario 104, R9."""
    world = stored_world()
    settings = OriginalSettings(topic=TIP.topic, topic_id=TIP.topic_id)
    StoredOriginals(world.objects, OriginalsKeys()).keep(settings)

    assert scrubbed(world).problems == ()


@pytest.mark.parametrize(("incarnation", "is_reported"), [(None, True), (9, False)])
def test_scrub_when_offsets_are_stored_twice_then_reports_it_of_one_claim(
    incarnation: int | None, *, is_reported: bool
) -> None:
    """Scenarios 6, 104: two leaders may finish the same range, one leader must not."""
    world = stored_world()
    first, second = (record.metadata for record in world.records()[:2])
    wider = replace(
        first,
        segment_id=replace(first.segment_id, id=UUID(int=99)),
        offsets=OffsetRange(start_offset=0, end_offset=second.offsets.end_offset),
        objects=(),
    )
    if incarnation is not None:
        wider = replace(wider, writer=replace(wider.writer, incarnation=UUID(int=incarnation)))
    assert world.metadata.publish(SegmentEvent(event_id=world.new_id(), metadata=wider)).accepted

    found = scrubbed(world)

    problem = f"{TIP}: {second.offsets} is stored as well as {wider.offsets} by one claim"
    assert (problem in found.problems) is is_reported


def test_scrub_when_first_segment_is_not_stored_then_reports_the_hole() -> None:
    """Scenario 80, 104."""
    world = stored_world()
    log = world.topic
    first = world.records()[0].metadata.segment_id
    for record in log.records(0):
        if first.id.bytes in record.key:
            log.append(0, record.key, None)

    found = scrubbed(world)

    assert f"{TIP}: nothing is stored of [0, 10)" in found.problems
