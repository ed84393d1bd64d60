"""R23: the stream of an earlier leader is fenced before the next leader streams (PIP-76)."""

from __future__ import annotations

import pytest

from rlmm.events.offload_segment import offload_segments
from rlmm.events.pause import PausableTask, TopicPaused
from rlmm.state.offload_segments import OffloadSegmentStatus
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process
from tests.fakes.world import TIP, TOPIC_ID, World
from tests.unit.rlm.tasks.copying.test_streams import FINISHED, STREAMS, run, watch

FENCE = "publish DELETE_SEGMENT_STARTED"
FENCED = (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED)


class Moved:
    """The lead moves at the moment when the first manager records the end of its segment."""

    def __init__(self, *, pauses_deletions: bool = False) -> None:
        self.world = World(brokers=2, policy=STREAMS)
        self.world.produce(10)
        self.former = self.world.start(1)
        self.next: Process | None = None
        if pauses_deletions:
            pause = TopicPaused(
                event_id=self.world.new_id(),
                topic=TIP.topic,
                topic_id=TOPIC_ID,
                tasks=frozenset({PausableTask.DELETE}),
            )
            assert self.world.metadata.publish(pause).accepted
        self.former.effects.before(FINISHED, self._move)
        run(self.world, self.former)

    def _move(self) -> None:
        self.world.elect(2)
        self.next = self.world.start(2)
        self.next.step()
        self.fenced = [r.metadata.is_open for r in self.world.records(*FENCED)]
        watch(self.next)


@pytest.mark.parametrize("pauses_deletions", [False, True])
def test_stream_when_the_lead_moved_then_the_former_end_is_refused(
    *, pauses_deletions: bool
) -> None:
    """One cycle of the next leader fences, and permits its own stream."""
    moved = Moved(pauses_deletions=pauses_deletions)

    (stored,) = moved.world.records(SegmentState.COPY_SEGMENT_FINISHED)
    assert moved.fenced == [True]
    assert stored.metadata.writer.broker_id == 2
    assert moved.world.stored() == [(0, 10)]
    assert violations(moved.world) == []


def test_stream_when_fenced_then_its_account_fails_and_nothing_of_it_is_left() -> None:
    moved = Moved()
    assert moved.next is not None

    moved.world.produce(5)
    for _ in range(3):
        run(moved.world, moved.next)

    segments = offload_segments(moved.world.metadata, TIP)
    failed = [each for each in segments if each.status is OffloadSegmentStatus.FAILED]
    assert [each.writer.broker_id for each in failed] == [1]
    assert leftovers(moved.world) == []


def test_stream_when_the_fence_cannot_be_recorded_then_the_partition_waits_for_it() -> None:
    world = World(brokers=2, policy=STREAMS)
    world.produce(10)
    former = world.start(1)
    former.effects.before("write .meta", former.effects.crash)
    run(world, former)
    world.elect(2)
    following = world.start(2)
    following.effects.fail(FENCE, RetriableError("the metadata topic is away"))

    world.cycle()
    watch(following)
    before = world.stored()
    run(world, following)

    assert before == []
    assert world.stored() == [(0, 10)]
