"""A scrub finds what is missing in a store, and what nothing names."""

from __future__ import annotations

from rsm.segment.local_segment import BytesSource
from tests.chaos.scrub import Scrubbed, scrub
from tests.twins.world import TIP, World

NOW_MS = 1 << 60


def stored_world() -> World:
    """Three segments, stored."""
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

    assert found == Scrubbed(segments_count=3, objects_count=6, problems=())


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


def test_scrub_when_first_segment_is_not_stored_then_tells_the_hole() -> None:
    """Scenario 80, 104."""
    world = stored_world()
    log = world.topic
    first = world.records()[0].metadata.segment_id
    for record in log.records(0):
        if first.id.bytes in record.key:
            log.append(0, record.key, None)

    found = scrubbed(world)

    assert f"{TIP}: nothing is stored of [0, 10)" in found.problems
