"""The account that a stream keeps of its offload segments (PIP-76)."""

from __future__ import annotations

import logging
from dataclasses import replace
from uuid import UUID

import pytest

from rlm.tasks.copying.offload_account import OffloadAccount
from rlmm.events.offload_segment import OffloadSegmentChanged, offload_segments
from rlmm.events.policy import TopicPolicy
from rlmm.state.offload_segments import (
    OffloadPosition,
    OffloadSegmentRecord,
    OffloadSegmentStatus,
)
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState
from tests.fakes.process import Process
from tests.fakes.world import TIP, World
from tests.unit.rlm.tasks.copying.test_streams import (
    FINISHED,
    SEGMENTS,
    STARTED,
    STREAMS,
    run,
    watch,
)

ACCOUNT = "publish OffloadSegmentChanged"
ASSIGNED, OFFLOADED, FAILED = OffloadSegmentStatus
FOLLOWING_ID = UUID(int=99)
UNREACHABLE = RetriableError("store cannot be reached")


class InChunks(Process):
    """A manager that streams in chunks of 1 MiB."""

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        return (ChunkedLayout(max_chunk_bytes=1 << 20),)


def accounts(world: World) -> tuple[OffloadSegmentRecord, ...]:
    return offload_segments(world.metadata, TIP)


def test_account_when_a_segment_is_streamed_then_has_positions_and_what_locates_it() -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    world.produce(5)
    process = world.start()

    run(world, process)

    (stored,) = world.records(SegmentState.COPY_SEGMENT_FINISHED)
    (account,) = accounts(world)
    assert (account.id, account.segment_ids) == (
        stored.metadata.segment_id.id,
        (stored.metadata.segment_id.id,),
    )
    assert account.objects == stored.metadata.object_keys
    assert account.status is OFFLOADED
    assert account.begin == OffloadPosition(ledger_id=0, entry_id=0, offset=0)
    assert account.end is not None
    assert (account.end.ledger_id, account.end.offset) == (10, 15)
    assert account.offloaded_ms is not None
    assert account.offloaded_ms >= account.assigned_ms


def test_account_when_the_stream_is_in_chunks_then_names_all_that_may_be_written_at_once() -> None:
    world = World(policy=STREAMS, process_type=InChunks)
    world.segments(1)

    run(world, world.start())

    (stored,) = world.records(SegmentState.COPY_SEGMENT_FINISHED)
    (account,) = accounts(world)
    chunk, companion = stored.metadata.object_keys
    prefix = chunk.removesuffix("00000")
    assert account.objects == (f"{prefix}{{00000..00100}}", companion)


def test_accounts_when_a_stream_continues_then_each_begins_where_the_last_one_ended() -> None:
    world = World(policy=STREAMS)
    process = world.start()
    for _ in range(3):
        world.produce(10)
        run(world, process)

    found = accounts(world)

    assert [each.status for each in found] == [OFFLOADED] * 3
    assert [each.end for each in found[:-1]] == [each.begin for each in found[1:]]


def test_account_when_the_stream_begins_then_is_recorded_before_its_segment() -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    process.effects.before(STARTED, process.effects.crash)

    run(world, process)

    (account,) = accounts(world)
    assert (account.status, account.end, account.offloaded_ms) == (ASSIGNED, None, None)
    assert world.records() == []


def test_account_when_it_cannot_be_assigned_then_nothing_is_streamed() -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    process.effects.fail(ACCOUNT, UNREACHABLE)

    world.cycle()
    watch(process, times=6)

    assert world.records() == []


@pytest.mark.parametrize("act", [STARTED, "write .log", "write .meta"])
def test_account_when_an_act_fails_then_failed_and_the_next_one_begins_at_the_same_position(
    act: str,
) -> None:
    world = World(policy=STREAMS)
    world.segments(2)
    process = world.start()
    process.effects.fail(act, UNREACHABLE)
    world.cycle()
    watch(process, times=6)
    world.clock.advance(60_000)
    world.settle()
    run(world, process)

    found = accounts(world)

    assert sorted(each.status.name for each in found) == ["FAILED", "OFFLOADED"]
    assert len({each.begin for each in found}) == 1


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (STARTED, [FAILED, OFFLOADED]),
        ("write .log", [FAILED, OFFLOADED]),
        (FINISHED, [OFFLOADED, OFFLOADED]),
    ],
)
def test_account_when_the_process_dies_then_the_next_claim_completes_it(
    act: str, expected: list[OffloadSegmentStatus]
) -> None:
    """The segment's record shows the outcome: stored, deleted, or never started."""
    world = World(policy=STREAMS)
    world.segments(2)
    process = world.start()
    when = process.effects.after if act == FINISHED else process.effects.before
    when(act, process.effects.crash)
    run(world, process)

    following = world.restart()
    world.clock.advance(world.settings.attempt_timeout_ms)
    world.settle()
    world.produce(10)
    run(world, following)

    found = accounts(world)
    assert sorted((each.status for each in found), key=lambda each: each.name) == expected
    assert found[-1].end is not None
    assert found[-1].end.offset == 30
    assert all(each.objects for each in found)


@pytest.mark.parametrize("policy", [STREAMS, SEGMENTS])
def test_account_when_the_process_dies_after_the_end_then_completed_without_another_stream(
    policy: TopicPolicy,
) -> None:
    """No records follow in the log, or the topic is no longer streamed."""
    world = World(policy=STREAMS)
    world.segments(1)
    world.produce(5)
    process = world.start()
    process.effects.after(FINISHED, process.effects.crash)
    run(world, process)
    left = [each.status for each in accounts(world)]
    world.set_policy(policy)

    world.restart()
    world.roll()
    world.cycle()

    (account,) = accounts(world)
    assert left == [ASSIGNED]
    assert account.status is OFFLOADED
    assert account.end == OffloadPosition(ledger_id=10, entry_id=1, offset=15)


def test_account_when_the_last_record_is_lost_then_the_next_cycle_completes_it() -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    process.effects.after(FINISHED, lambda: process.effects.fail(ACCOUNT, UNREACHABLE))
    run(world, process)
    left = [each.status for each in accounts(world)]

    process.effects.fail(ACCOUNT, UNREACHABLE)
    world.cycle()
    failed = [each.status for each in accounts(world)]
    world.cycle()

    assert (left, failed) == ([ASSIGNED], [ASSIGNED])
    assert [each.status for each in accounts(world)] == [OFFLOADED]


@pytest.mark.parametrize("is_cut", [False, True])
def test_account_when_the_log_no_longer_has_the_end_then_the_end_has_only_its_offset(
    *, is_cut: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The end was trimmed, or an unclean election cut it off."""
    caplog.set_level(logging.INFO)
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    process.effects.after(FINISHED, process.effects.crash)
    run(world, process)
    if is_cut:
        world.leader().truncate(5)
    else:
        world.produce(5)
        world.leader().move_start(10)
        world.leader().delete_old_files()

    world.restart()
    world.cycle()

    (account,) = accounts(world)
    assert account.status is OFFLOADED
    assert account.end == OffloadPosition(ledger_id=10, entry_id=0, offset=10)
    assert account.offloaded_ms is not None
    assert "cannot complete the accounts of offload segments" not in caplog.text


def test_account_when_the_end_is_trimmed_and_another_begins_there_then_has_its_position() -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    world.produce(5)
    process = world.start()
    process.effects.after(FINISHED, lambda: process.effects.fail(ACCOUNT, UNREACHABLE))
    run(world, process)
    (left,) = accounts(world)
    end = OffloadPosition(ledger_id=10, entry_id=1, offset=15)
    following = replace(left, id=FOLLOWING_ID, segment_ids=(FOLLOWING_ID,), begin=end)
    world.metadata.publish(
        OffloadSegmentChanged(event_id=UUID(int=98), topic_id_partition=TIP, segment=following)
    )
    world.leader().truncate(5)

    world.cycle()

    found = {each.id: each for each in accounts(world)}
    assert (left.status, found[left.id].status) == (ASSIGNED, OFFLOADED)
    assert found[left.id].end == end


def test_account_when_the_answer_to_the_end_is_lost_then_a_later_cycle_completes_it() -> None:
    """The segment's own record shows whether it is stored."""
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    process.effects.lose_answer(FINISHED, UNREACHABLE)
    run(world, process)

    world.cycle()

    (stored,) = world.records(SegmentState.COPY_SEGMENT_FINISHED)
    statuses = {each.id: each.status for each in accounts(world)}
    assert statuses[stored.metadata.segment_id.id] is OFFLOADED
    assert ASSIGNED not in statuses.values()


def test_account_when_a_last_record_is_lost_during_a_completion_then_the_next_one_has_it() -> None:
    """The first completion skips the segment, which was in flight a moment before."""
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    process.effects.before(STARTED, process.effects.crash)
    run(world, process)
    following = world.restart()
    following.leadership.claim_all(following.leadership.keep_only({TIP: 0}))
    task = following.leadership.led()[0]
    (assigned,) = accounts(world)
    account = OffloadAccount(following.ports, task.lead, task.streaming)

    def in_flight() -> frozenset[UUID]:
        following.effects.fail(ACCOUNT, UNREACHABLE)
        account.record_failed(assigned)
        return frozenset({assigned.id})

    account.complete(Lineage(entries=()), in_flight)
    account.complete(Lineage(entries=()), frozenset)

    assert [each.status for each in accounts(world)] == [FAILED]
