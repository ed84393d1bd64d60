"""Each guard has a variant without it, and a story in which that variant breaks an invariant.

The same story with the guard keeps them all. So a guard can't be lost unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from rlm.broker.share_groups import ShareGroupStart
from rlm.source.log_source import LocalLog, LocalSegment, LogSource, OpenSegment
from rlm.tasks.copier import Copier, CopyOrder
from rlm.tasks.ports import Ports
from rlm.tasks.trimmer import Trimmer, TrimPlan
from rlmm.events import Event, SegmentEvent
from rlmm.spi import PublishResult, SegmentRecord
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject
from rsm.segment.ranges import OffsetRange
from tests.segment_builder import build_batch, records
from tests.twins.invariants import violations
from tests.twins.metadata import FreshMetadata
from tests.twins.process import Outside, Process
from tests.twins.share_groups import MemoryShareGroups
from tests.twins.world import TIP, World

STARTED = SegmentState.COPY_SEGMENT_STARTED
FINISHED = SegmentState.COPY_SEGMENT_FINISHED
DELETE_STARTED = SegmentState.DELETE_SEGMENT_STARTED


class ViewedMetadata(FreshMetadata):
    """Shows segments otherwise than they are."""

    def list_remote_log_segments(
        self,
        topic_id_partition: TopicIdPartition,
        *,
        states: Sequence[SegmentState] | None = None,
        from_offset: int = 0,
        leader_epoch: int | None = None,
    ) -> Iterator[SegmentRecord]:
        found = super().list_remote_log_segments(
            topic_id_partition,
            states=states,
            from_offset=from_offset,
            leader_epoch=leader_epoch,
        )
        return iter([replace(r, metadata=self.shown(r.metadata)) for r in found])

    def shown(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        return metadata


class UnfinishedCounts(ViewedMetadata):
    """Without the rule that only a finished copy counts as stored."""

    def shown(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        return replace(metadata, state=FINISHED) if metadata.state is STARTED else metadata


class HolesCount(ViewedMetadata):
    """Without the rule that the stored range has no hole: the furthest end counts."""

    def shown(self, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
        return replace(
            metadata,
            offsets=OffsetRange(start_offset=0, end_offset=metadata.offsets.end_offset),
            segment_leader_epochs=Lineage.of((0, 0)),
        )


class ExpectsAnything(FreshMetadata):
    """Without the rule that a deletion names the state it was decided on."""

    def publish(self, event: Event) -> PublishResult:
        result = super().publish(event)
        if result.accepted or not isinstance(event, SegmentEvent):
            return result
        current = self.segment(event.metadata.segment_id)
        if event.metadata.state is not DELETE_STARTED or current is None:
            return result
        fresh_id = UUID(int=event.event_id.int + (1 << 64))
        return super().publish(
            replace(event, event_id=fresh_id, expected_state=current.metadata.state)
        )


class UnconfirmedTrimmer(Trimmer):
    """Without the look, a moment before the cut, at who leads and whose claim is the newest."""

    def _confirm(
        self, plans: Mapping[TopicIdPartition, TrimPlan]
    ) -> Mapping[TopicIdPartition, TrimPlan]:
        self._broker.offsets({tip: plan.writer.leader_epoch for tip, plan in plans.items()})
        return plans


class UnrecordedTrimmer(Trimmer):
    """Without the trim on record before the cut."""

    def _record(self, tip: TopicIdPartition, plan: TrimPlan) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class UnverifiedSegment:
    data: LogSegmentData
    max_timestamp_ms: int

    def verify_unchanged(self) -> None:
        """Never looks."""


class UnverifiedSource(LogSource):
    """Without the look at the file after its last byte."""

    def __init__(self, inner: LogSource) -> None:
        self._inner = inner

    def partitions(self) -> tuple[TopicIdPartition, ...]:
        return self._inner.partitions()

    def local_log(self, topic_id_partition: TopicIdPartition) -> LocalLog:
        return self._inner.local_log(topic_id_partition)

    def open_segment(
        self,
        topic_id_partition: TopicIdPartition,
        segment: LocalSegment,
        lineage: Lineage,
        last_stable_offset: int,
    ) -> AbstractContextManager[OpenSegment]:
        return self._open(
            self._inner.open_segment(topic_id_partition, segment, lineage, last_stable_offset)
        )

    @contextmanager
    def _open(self, opening: AbstractContextManager[OpenSegment]) -> Iterator[OpenSegment]:
        with opening as opened:
            yield UnverifiedSegment(data=opened.data, max_timestamp_ms=opened.max_timestamp_ms)


class WithUnfinishedCounting(Process):
    metadata_type = UnfinishedCounts


class WithHolesCounting(Process):
    metadata_type = HolesCount


class WithoutExpectedState(Process):
    metadata_type = ExpectsAnything


class WithoutConfirmation(Process):
    def make_trimmer(self) -> Trimmer:
        return UnconfirmedTrimmer(self.ports, plan_max_age_ms=self.settings.plan_max_age_ms)


class WithoutTrimOnRecord(Process):
    def make_trimmer(self) -> Trimmer:
        return UnrecordedTrimmer(self.ports, plan_max_age_ms=self.settings.plan_max_age_ms)


class WithoutVerification(Process):
    def make_source(self, outside: Outside) -> LogSource:
        return UnverifiedSource(outside.source)


class WithoutShareGroups(Process):
    """Without the question where share groups start."""

    def _make_ports(self, outside: Outside) -> Ports:
        return super()._make_ports(replace(outside, share_groups=MemoryShareGroups()))


def finished_is_never_known(world: World) -> None:
    """Objects are written, and the event that says so is not."""
    world.segments(2)
    failing = world.start().effects
    failing.fail("publish COPY_SEGMENT_FINISHED", RetriableError("no topic"), times=20)
    failing.fail("publish DELETE_SEGMENT_STARTED", RetriableError("no topic"), times=20)
    for _ in range(4):
        world.cycle()


def second_of_three_is_missing(world: World) -> None:
    """The first and the third segment are stored, the second one can't be."""
    world.segments(4)
    process = world.start()
    process.leadership.claim_all(process.leadership.keep_only({TIP: 0}))
    for index in (0, 2):
        order = CopyOrder(
            lead=process.leadership.leads()[0],
            segment_id=world.new_id(),
            segment=process.ports.source.local_log(TIP).rolled[index],
            lineage=world.leader().checkpoint,
            timeout_ms=600_000,
            stopped=lambda: False,
        )
        Copier(process.ports).copy(order)
    process.effects.fail("write .log", RetriableError("no store"), times=20)
    for _ in range(4):
        world.cycle()


def finished_meets_its_deletion(world: World) -> None:
    """A second manager is about to delete what it takes for a leftover when it is finished."""
    world.segments(1)
    first = world.start()
    first.effects.before("publish COPY_SEGMENT_FINISHED", first.effects.crash)
    world.cycle()
    left = world.records()[0].metadata
    second = world.start()

    def finish_late() -> None:
        objects = tuple(
            StoredObject(key=info.name, length_bytes=info.length_bytes, crc32c=info.crc32c)
            for info in (world.objects.info(stored.key) for stored in left.objects)
        )
        finished = replace(left, state=FINISHED, objects=objects)
        event = SegmentEvent(event_id=world.new_id(), metadata=finished)
        assert world.metadata.publish(event).accepted

    second.effects.before("publish DELETE_SEGMENT_STARTED", finish_late)
    world.settle()


def claimed_before_the_cut(world: World) -> None:
    """A second manager of the same broker claims between the trim event and DeleteRecords."""
    world.segments(3)
    first = world.start()
    first.effects.after("publish LocalLogTrimmed", lambda: world.start(process_type=Process).step())
    world.settle()


def trimmed_once(world: World) -> None:
    """Nothing goes wrong at all."""
    world.segments(3)
    world.start()
    world.settle()


def cut_and_grown_after_the_last_byte(world: World) -> None:
    """The file is cut and grows again in the same epoch when all its bytes have been read."""
    world.segments(2)
    replica = world.leader()

    def rewrite() -> None:
        replica.truncate(15)
        replica.append(build_batch(records(5, base_offset=15), leader_epoch=0))
        replica.roll()
        world.commit()

    process = world.start()
    process.effects.after("write .log", lambda: process.effects.after("write .log", rewrite))
    world.settle()
    world.segments(1)
    world.settle()


def share_group_is_behind(world: World) -> None:
    """A share group is slower than tiering."""
    world.share_groups.begun[TIP] = ShareGroupStart(group="sharers", offset=13)
    world.segments(3)
    world.start()
    world.settle()


Story = Callable[[World], None]

GUARDS: tuple[tuple[type[Process], Story, str], ...] = (
    (WithUnfinishedCounting, finished_is_never_known, "is not stored"),
    (WithHolesCounting, second_of_three_is_missing, "is not stored"),
    (WithoutExpectedState, finished_meets_its_deletion, "deletes the finished copy"),
    (WithoutConfirmation, claimed_before_the_cut, "without the newest claim"),
    (WithoutTrimOnRecord, trimmed_once, "which is not recorded"),
    (WithoutVerification, cut_and_grown_after_the_last_byte, "with other bytes"),
    (WithoutShareGroups, share_group_is_behind, "a share group has come to 13"),
)


@pytest.mark.parametrize(("variant", "story", "broken"), GUARDS)
def test_variant_when_its_guard_is_missing_then_an_invariant_breaks(
    variant: type[Process], story: Story, broken: str
) -> None:
    """Scenarios 14, 79, 80, 100, 105; R1, R2, R7, R8, R21."""
    world = World(process_type=variant)

    story(world)

    assert any(broken in violation for violation in violations(world))


@pytest.mark.parametrize("story", [story for _, story, _ in GUARDS])
def test_product_when_it_meets_the_same_story_then_all_invariants_hold(story: Story) -> None:
    """Scenarios 14, 79, 80, 100, 105; R1, R2, R7, R8, R21."""
    world = World()

    story(world)

    assert violations(world) == []
