"""The layout of a topic's new segments: the topic's own, else that of the managers."""

from __future__ import annotations

from dataclasses import replace

from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process
from tests.fakes.world import KEEP_REMOTE, World

KEEP_LOCAL = replace(KEEP_REMOTE, local_retention_ms=-1)
BLOCKS = replace(KEEP_LOCAL, layout="block_v1")


class TwoLayouts(Process):
    """A manager that writes `raw`, and reads and writes `block_v1` if a topic wants it."""

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        return (RawLayout(), BlockV1Layout(block_bytes=4096))


def layouts(world: World) -> list[str]:
    return [each.metadata.layout for each in world.records()]


def test_copy_when_the_topics_layout_changes_then_only_new_segments_have_it() -> None:
    world = World(policy=KEEP_LOCAL)
    world.segments(1)
    world.start(process_type=TwoLayouts)
    world.settle()

    world.set_policy(BLOCKS)
    world.segments(1)
    world.settle()
    world.set_policy(KEEP_LOCAL)
    world.segments(1)
    world.settle()

    assert layouts(world) == ["raw", "block_v1", "raw"]
    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    assert violations(world) + leftovers(world) == []


def test_copy_when_the_manager_lacks_the_layout_then_writes_nothing_and_says_why() -> None:
    """The manager must not write another layout instead; the local log keeps the records."""
    world = World(policy=replace(BLOCKS, layout="other.module:Layout"))
    world.segments(2)
    process = world.start(process_type=TwoLayouts)

    world.settle()

    failure = process.reports[0].copy_blocked
    assert failure is not None
    assert "Add it to rsm.config.layout" in str(failure)
    assert (layouts(world), list(world.object_names())) == ([], [])
    assert violations(world) + leftovers(world) == []
