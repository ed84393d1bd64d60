"""`rlm segments delete --streamed`: what it refuses, requests, and waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import pytest

from rlm.operator.pause import Pausing
from rlm.operator.streamed_deletion import DeletionState, SegmentDeletion, StreamedDeletions
from rlm.policy.view import AttemptFailure
from rlm.status.document import PartitionReport, StreamReport
from rlm.tasks.context.fault_report import report_fault
from rlmm.events.pause import PausableTask
from rlmm.events.policy import TopicPolicy
from rlmm.events.segment import SegmentEvent
from rsm.segment.epochs import Lineage
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState
from rsm.segment.offload_settings import OffloadMode
from rsm.segment.ranges import OffsetRange
from rsm.spi import ObjectFault
from tests.fakes.world import KEEP_REMOTE, TIP
from tests.unit.rlm.tasks.copying.test_streams import SEGMENTS, STREAMS
from tests.unit.rlm.tasks.streamed_world import STREAMED_COUNT, StreamedWorld

MINUTE_MS = 60_000
ONLY_COPY, TO_DELETE, DELETED, DEAD_LETTERED = DeletionState


class Managers:
    """The manager of the world's broker; a request for a deletion makes it run a cycle, too."""

    def __init__(self, world: StreamedWorld) -> None:
        self.world = world
        self.changes: dict[str, object] = {}
        self.is_silent = self.refuses = self.ignores = False
        self.requests = 0

    def reports(self, policy: TopicPolicy) -> Mapping[TopicIdPartition, PartitionReport]:
        if self.is_silent:
            return {}
        found = {each.topic_id_partition: each for each in self.world.process.reports}
        return {tip: replace(each, **self.changes) for tip, each in found.items()}  # type: ignore[arg-type]  # fields of a report

    def silence(self, tip: TopicIdPartition) -> str:
        return "no live manager"

    def delete_streamed(self, tip: TopicIdPartition) -> None:
        self.requests += 1
        if self.refuses:
            raise RetriableError("the manager refused")
        if not self.ignores:
            assert self.world.delete_streamed(self.world.process, tip=tip)
            self.world.cycle()


class Command:
    """One run of the command on the partition."""

    def __init__(self, world: StreamedWorld | None = None) -> None:
        self.world = world or StreamedWorld()
        self.managers = Managers(self.world)
        self.shown: list[str] = []
        self.deletions = StreamedDeletions(
            self.world.metadata,
            self.managers,
            self._local_starts,
            self.world.clock,
            progress=self.shown.append,
        )

    def examine(self, policy: TopicPolicy = SEGMENTS) -> tuple[SegmentDeletion, ...]:
        return self.deletions.examine(policy, (TIP,), timeout_ms=MINUTE_MS)

    def delete(
        self, found: Iterable[SegmentDeletion], *, timeout_ms: int = 10 * MINUTE_MS
    ) -> list[DeletionState]:
        rows = self.deletions.delete(SEGMENTS, found, timeout_ms=timeout_ms)
        return [row.state for row in rows]

    def trim(self, offset: int) -> None:
        """Trim the local log to a start above `offset`."""
        self.world.set_policy(replace(SEGMENTS, local_retention_ms=KEEP_REMOTE.local_retention_ms))
        self.world.settle()
        self.world.set_policy(SEGMENTS)
        assert self.world.leader().log_start_offset > offset

    def _local_starts(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, int]:
        return {tip: self.world.leader(tip).log_start_offset for tip in partitions}


def test_examine_when_the_broker_has_all_records_then_all_may_be_deleted_after_copies() -> None:
    command = Command()

    rows = command.examine()

    assert [row.state for row in rows] == [TO_DELETE] * STREAMED_COUNT
    assert [row.segment.to_copy for row in rows] == [
        (each.metadata.offsets,) for each in command.world.streamed
    ]
    assert {row.partition for row in rows} == {TIP}


def test_examine_when_the_broker_has_trimmed_some_then_these_are_the_only_copies() -> None:
    command = Command()
    command.trim(15)

    assert [row.state for row in command.examine()] == [ONLY_COPY, ONLY_COPY, TO_DELETE]


def test_examine_when_nothing_was_streamed_then_no_manager_is_asked() -> None:
    command = Command()
    command.managers.is_silent = True
    other = replace(TIP, partition=1)

    assert command.deletions.examine(STREAMS, (other,), timeout_ms=0) == ()


@pytest.mark.parametrize(
    ("policy", "stream"),
    [(STREAMS, None), (replace(SEGMENTS, offload_mode=None), StreamReport())],
)
def test_examine_when_the_topic_is_streamed_then_refused(
    policy: TopicPolicy, stream: StreamReport | None
) -> None:
    """Without a mode of its own, a topic has that of the managers' files."""
    command = Command()
    command.managers.changes = {"stream": stream}

    with pytest.raises(InvalidConfigError, match="First run `rlm topic set`"):
        command.examine(policy)


def test_examine_when_the_topic_has_the_mode_segment_then_an_older_report_does_not_count() -> None:
    command = Command()
    command.managers.changes = {"stream": StreamReport()}

    policy = replace(SEGMENTS, offload_mode=OffloadMode.SEGMENT)

    assert len(command.examine(policy)) == STREAMED_COUNT


def test_examine_when_the_leaders_manager_is_silent_then_says_why() -> None:
    command = Command()
    command.managers.is_silent = True

    with pytest.raises(RetriableError, match="does not answer") as raised:
        command.examine()

    assert raised.value.context["reason"] == "no live manager"


def test_examine_when_the_streams_last_segment_is_open_then_waits_for_its_end() -> None:
    command = Command()
    world = command.world
    _open_segment(world)
    before_ms = world.clock.monotonic_ms()

    with pytest.raises(RetriableError, match="last segment is not completed yet"):
        command.examine()

    assert world.clock.monotonic_ms() - before_ms >= MINUTE_MS
    world.cycle()
    assert len(command.examine()) == STREAMED_COUNT


def test_examine_when_the_last_segment_is_open_and_deletions_are_paused_then_names_the_pause() -> (
    None
):
    """The command used to wait for the whole time limit, and then to name only the segment."""
    command = Command()
    world = command.world
    _open_segment(world)
    Pausing(world.metadata, world.new_id).pause(SEGMENTS, {PausableTask.DELETE})
    before_ms = world.clock.monotonic_ms()

    with pytest.raises(InvalidConfigError, match=r"paused=delete\)\. Resume them first"):
        command.examine()

    assert world.clock.monotonic_ms() == before_ms


def _open_segment(world: StreamedWorld) -> None:
    streamed = world.streamed[0].metadata
    opened = replace(
        streamed,
        segment_id=replace(streamed.segment_id, id=world.new_id()),
        offsets=OffsetRange(start_offset=45, end_offset=46),
        segment_size_bytes=0,
        segment_leader_epochs=Lineage.of((0, 45)),
        state=SegmentState.COPY_SEGMENT_STARTED,
        is_open=True,
    )
    event = SegmentEvent(event_id=world.new_id(), metadata=opened)
    assert world.metadata.publish(event).accepted


def test_examine_when_a_copy_is_reported_as_damaged_then_it_is_no_copy() -> None:
    """The prompt must not promise a deletion that the manager's own check may refuse."""
    command = Command()
    world = command.world
    refused = RetriableError("the metadata topic is away")
    world.process.effects.fail("publish DELETE_SEGMENT_STARTED", refused, times=99)
    world.delete_streamed(world.process)
    world.pass_cycles(4)
    command.trim(15)
    before = command.examine()
    for copy in world.records():
        if copy.metadata.layout == "raw":
            key = copy.metadata.objects[0].key
            fault = ObjectFault(object_key=key, is_missing=True, reason="away")
            report_fault(world.metadata, copy.metadata.segment_id, fault, world.clock, world.new_id)

    assert {row.state for row in before} == {TO_DELETE}
    assert next(row.state for row in command.examine()) is ONLY_COPY


def test_delete_when_managers_copy_first_then_returns_once_all_are_deleted() -> None:
    command = Command()

    assert command.delete(command.examine()) == [DELETED] * STREAMED_COUNT
    assert (command.world.left(), command.world.broken()) == ([], [])
    assert command.shown[0] == f"orders: segments left: {STREAMED_COUNT} of {STREAMED_COUNT}"


def test_delete_when_some_are_the_only_copy_then_they_stay() -> None:
    command = Command()
    command.trim(15)

    assert command.delete(command.examine()) == [DELETED]
    assert len(command.world.left()) == STREAMED_COUNT - 1


def test_delete_when_there_is_nothing_to_delete_then_nothing_is_requested() -> None:
    command = Command()
    Pausing(command.world.metadata, command.world.new_id).pause(SEGMENTS, {PausableTask.DELETE})

    assert command.delete(()) == []
    assert command.managers.requests == 0


@pytest.mark.parametrize("task", [PausableTask.COPY, PausableTask.DELETE])
def test_delete_when_what_it_needs_is_paused_then_refused(task: PausableTask) -> None:
    command = Command()
    found = command.examine()
    Pausing(command.world.metadata, command.world.new_id).pause(SEGMENTS, {task})

    with pytest.raises(
        InvalidConfigError, match="copies or deletions of the topic are paused"
    ) as raised:
        command.delete(found)

    assert raised.value.context["paused"] == task.name.lower()


def test_delete_when_the_log_is_trimmed_before_the_copies_then_says_that_it_stays() -> None:
    command = Command()
    found = command.examine()
    command.trim(15)

    with pytest.raises(InvalidConfigError, match="has become the only copy"):
        command.delete(found)

    assert len(command.world.left()) == STREAMED_COUNT


def test_delete_when_managers_refuse_and_copies_fail_then_shows_why_until_the_time_is_over() -> (
    None
):
    command = Command()
    found = command.examine()
    failure = AttemptFailure(error="store away", cause="c", is_corrupt=False, attempts=1)
    command.managers.ignores = True
    command.managers.changes = {"repair_failure": failure}

    with pytest.raises(RetriableError, match="the deletions continue"):
        command.delete(found, timeout_ms=MINUTE_MS)

    assert command.shown == ["orders: segments left: 3 of 3, partition 0: copies fail: store away"]
    assert command.managers.requests > 10
    command.managers.refuses = True
    with pytest.raises(RetriableError, match="the deletions continue"):
        command.delete(found, timeout_ms=MINUTE_MS)
    assert command.shown[-1] == "orders: segments left: 3 of 3, the manager refused"


def test_delete_when_the_manager_falls_silent_then_waits_for_it() -> None:
    command = Command()
    found = command.examine()
    command.managers.is_silent = True

    with pytest.raises(RetriableError, match="the deletions continue"):
        command.delete(found, timeout_ms=MINUTE_MS)

    assert command.shown == ["orders: segments left: 3 of 3, partition 0: no live manager"]


def test_delete_when_objects_cannot_be_deleted_then_ends_with_a_dead_letter() -> None:
    command = Command()
    found = command.examine()
    world = command.world
    world.process.effects.fail("delete .log", RetriableError("denied"), times=999)
    world.process.effects.fail("delete .data", RetriableError("denied"), times=999)
    world.process.effects.fail("delete .meta", RetriableError("denied"), times=999)

    states = command.delete(found)

    assert set(states) == {DEAD_LETTERED}
