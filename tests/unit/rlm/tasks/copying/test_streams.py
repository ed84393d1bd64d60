"""R23: partitions that are streamed: what is stored when, and what a failed stream leaves."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from rlmm.events.offload import OffloadRequested
from rlmm.events.offload_segment import offload_segments
from rlmm.events.pause import PausableTask, TopicPaused
from rlmm.events.policy import PolicyState
from rlmm.state.offload_segments import OffloadPosition, OffloadSegmentStatus
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.block_v2.stream_index import decode_stream_index
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.segment.errors import FencedError, RetriableError, StoppedError, TieredStorageError
from rsm.segment.metadata import SegmentState
from rsm.segment.offload_settings import OffloadMode
from rsm.segment.ranges import ByteRange
from tests.fakes.effects import ProcessCrashError
from tests.fakes.invariants import leftovers, violations
from tests.fakes.process import Process
from tests.fakes.world import KEEP_REMOTE, TIP, TOPIC_ID, World

ROLLOVER_MS = 2_000
SEGMENTS = replace(KEEP_REMOTE, local_retention_ms=-1)
STREAMS = replace(
    SEGMENTS,
    offload_mode=OffloadMode.STREAM,
    offload_segment_max_bytes=1 << 20,
    offload_segment_rollover_ms=ROLLOVER_MS,
)
STARTED = "publish COPY_SEGMENT_STARTED"
FINISHED = "publish COPY_SEGMENT_FINISHED"
UNREACHABLE = RetriableError("store cannot be reached")


def watch(process: Process, times: int = 12) -> None:
    """Look for due streams as its loop would, over more than a rollover time."""
    for _ in range(times):
        if process.alive:
            with suppress(ProcessCrashError):
                process.watch.step()
        process.ports.clock.sleep_ms(400)


def run(world: World, process: Process) -> None:
    world.cycle()
    watch(process)


def stored_bytes(world: World) -> bytes:
    records = world.records(SegmentState.COPY_SEGMENT_FINISHED)
    whole = ByteRange(start_position=0, end_position=1 << 30)
    return b"".join(world.objects.read_range(r.metadata.objects[0].key, whole) for r in records)


def log_bytes(world: World) -> bytes:
    return b"".join(file.content for file in world.leader().files)


def test_stream_when_records_wait_for_the_rollover_then_stored_without_a_roll() -> None:
    world = World(policy=STREAMS)
    world.produce(12)
    process = world.start()

    run(world, process)

    assert world.stored() == [(0, 12)]
    assert stored_bytes(world) == log_bytes(world)
    assert violations(world) + leftovers(world) == []


def test_stream_when_no_time_has_passed_then_nothing_is_opened() -> None:
    """An idle partition costs no upload."""
    world = World(policy=STREAMS)
    world.produce(12)
    process = world.start()

    world.cycle()
    process.watch.step()

    assert world.records() == []


def test_stream_when_records_follow_then_continues_at_the_sealed_end() -> None:
    world = World(policy=STREAMS)
    process = world.start()
    for _ in range(3):
        world.produce(10)
        run(world, process)

    assert world.stored() == [(0, 10), (10, 20), (20, 30)]
    assert stored_bytes(world) == log_bytes(world)


def test_stream_when_it_continues_then_needs_no_cycle() -> None:
    world = World(policy=STREAMS)
    world.produce(10)
    process = world.start()
    run(world, process)

    world.produce(10)
    watch(process)

    assert world.stored() == [(0, 10), (10, 20)]


def test_stream_when_log_has_a_history_then_divided_by_size_across_files() -> None:
    world = World(policy=replace(STREAMS, offload_segment_max_bytes=1_500))
    world.segments(6)
    world.produce(5)
    process = world.start()

    run(world, process)

    stored = world.stored()
    sizes = [r.metadata.segment_size_bytes for r in world.records()]
    assert (stored[0][0], stored[-1][1]) == (0, 65)
    assert [end for _, end in stored[:-1]] == [start for start, _ in stored[1:]]
    assert len(stored) > 1
    assert all(1_000 < size <= 2_000 for size in sizes[:-1])
    assert any(start % 10 or end % 10 for start, end in stored)
    assert stored_bytes(world) == log_bytes(world)
    assert violations(world) + leftovers(world) == []


def test_stream_when_its_history_takes_longer_than_the_rollover_then_divided_by_size_only() -> None:
    """A short rollover time would divide a long history into small objects."""
    world = World(policy=STREAMS)
    world.segments(6)
    process = world.start()
    for _ in range(40):
        process.effects.before("offsets", lambda: world.clock.advance(ROLLOVER_MS))

    run(world, process)
    world.produce(5)
    run(world, process)

    assert world.stored() == [(0, 60), (60, 65)]
    assert stored_bytes(world) == log_bytes(world)


def test_stream_when_stored_then_record_is_an_ordinary_segments() -> None:
    world = World(policy=STREAMS)
    world.segments(2)
    process = world.start()
    run(world, process)

    (record,) = world.records()
    metadata = record.metadata

    assert (metadata.is_open, metadata.segment_size_bytes) == (False, len(log_bytes(world)))
    assert metadata.segment_leader_epochs.entries[0].start_offset == 0
    assert world.metadata.remote_log_segment_metadata(TIP, 15, leader_epoch=0) == metadata


def test_stream_when_started_then_the_record_has_no_end() -> None:
    world = World(policy=STREAMS)
    world.segments(2)
    process = world.start()
    seen = []
    process.effects.before("write .log", lambda: seen.extend(world.records()))

    run(world, process)

    (started,) = seen[:1]
    assert started.metadata.is_open
    assert started.metadata.state is SegmentState.COPY_SEGMENT_STARTED
    deadline_ms = started.copy_deadline_ms - started.changed_ms
    assert deadline_ms == ROLLOVER_MS + world.settings.attempt_timeout_ms


def test_stream_when_transaction_is_open_then_ends_below_it() -> None:
    """R23, scenario 2: only up to the last stable offset."""
    world = World(policy=STREAMS)
    world.produce(20)
    world.leader().open_transaction_offset = 10
    process = world.start()
    run(world, process)
    waiting = world.stored()

    world.leader().open_transaction_offset = None
    run(world, process)

    assert waiting == [(0, 10)]
    assert world.stored() == [(0, 10), (10, 20)]


def test_stream_when_above_the_high_watermark_then_waits() -> None:
    world = World(policy=STREAMS)
    world.produce(20, commit=False)
    world.commit(10)
    process = world.start()

    run(world, process)

    assert world.stored() == [(0, 10)]


def test_stream_when_log_starts_inside_a_batch_then_begins_with_it() -> None:
    world = World(policy=STREAMS)
    world.segments(2)
    world.leader().move_start(13)
    world.leader().delete_old_files()
    world.started_at_offset[TIP] = 13
    process = world.start()

    run(world, process)

    assert world.stored() == [(10, 20)]
    assert world.metadata.remote_log_segment_metadata(TIP, 12, leader_epoch=0) is None
    assert world.metadata.remote_log_segment_metadata(TIP, 13, leader_epoch=0) is not None


@pytest.mark.parametrize("act", [STARTED, "write .log", "write .meta", FINISHED])
def test_stream_when_an_act_fails_then_nothing_is_left_and_the_next_one_has_all(act: str) -> None:
    world = World(policy=STREAMS)
    world.segments(2)
    process = world.start()
    process.effects.fail(act, UNREACHABLE)
    world.cycle()
    watch(process, times=6)
    # After an error, the end may be on record, so its objects stay until that is known.
    failed = (world.stored(), world.object_names() if act != FINISHED else [])

    world.clock.advance(60_000)
    world.settle()
    run(world, process)
    world.settle()

    assert failed == ([], [])
    assert world.stored() == [(0, 20)]
    assert stored_bytes(world) == log_bytes(world)
    assert leftovers(world) == []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("act", [STARTED, "write .log", "write .meta", FINISHED, "offsets"])
def test_stream_when_the_process_dies_then_the_next_one_continues_without_gap_or_overlap(
    act: str, when: str
) -> None:
    world = World(policy=STREAMS)
    world.segments(2)
    process = world.start()
    getattr(process.effects, when)(act, process.effects.crash)
    run(world, process)

    following = world.restart()
    world.produce(10)
    world.settle()
    run(world, following)
    world.settle()

    stored = world.stored()
    assert (stored[0][0], stored[-1][1]) == (0, 30)
    assert [end for _, end in stored[:-1]] == [start for start, _ in stored[1:]]
    assert stored_bytes(world) == log_bytes(world)
    assert violations(world) + leftovers(world) == []


@pytest.mark.parametrize("act", [STARTED, "write .log", "write .meta", "offsets"])
def test_stream_when_the_lead_is_lost_meanwhile_then_never_finished(act: str) -> None:
    """R23: the new leader continues; nothing of the old one counts."""
    world = World(brokers=2, policy=STREAMS)
    world.segments(1)
    old, new = world.start(1), world.start(2)
    old.effects.after(act, lambda: world.elect(2))
    run(world, old)

    world.settle()
    run(world, new)
    world.clock.advance(world.settings.attempt_timeout_ms)
    world.settle()

    assert FINISHED not in old.effects.performed
    assert world.stored() == [(0, 10)]
    assert leftovers(world) == []


def test_stream_when_finished_came_through_unknown_then_stored_once() -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    process.effects.lose_answer(FINISHED, RetriableError("no answer"))
    run(world, process)

    world.clock.advance(60_000)
    world.settle()
    run(world, process)
    world.settle()

    assert world.stored() == [(0, 10)]
    assert leftovers(world) == []


@pytest.mark.parametrize("tasks", [(PausableTask.COPY,), ()])
def test_stream_when_paused_then_nothing_begins(tasks: tuple[PausableTask, ...]) -> None:
    world = World(policy=STREAMS)
    world.produce(10)
    process = world.start()
    paused = TopicPaused(
        event_id=world.new_id(), topic="orders", topic_id=TOPIC_ID, tasks=frozenset(tasks)
    )
    assert world.metadata.publish(paused).accepted

    run(world, process)

    assert world.stored() == ([] if tasks else [(0, 10)])


def test_stream_when_switched_off_and_on_then_no_gap_and_no_overlap() -> None:
    """Segment → stream → segment → stream: each continues at the covered end."""
    world = World(policy=SEGMENTS)
    world.segments(1)
    world.produce(5)
    process = world.start()
    world.settle()
    world.set_policy(STREAMS)
    run(world, process)
    world.produce(5)
    world.roll()
    world.segments(1)
    world.set_policy(SEGMENTS)
    world.settle()
    world.produce(5)
    world.set_policy(STREAMS)
    run(world, process)

    assert world.stored() == [(0, 10), (10, 15), (15, 20), (20, 30), (30, 35)]
    assert violations(world) + leftovers(world) == []


def test_stream_when_the_policy_changes_meanwhile_then_ends_at_its_next_step() -> None:
    world = World(policy=replace(STREAMS, offload_segment_rollover_ms=60_000))
    world.produce(5)
    process = world.start()
    world.cycle()
    assert process.leadership.led()[0].streaming.permit is not None
    request = OffloadRequested(event_id=world.new_id(), topic_id_partition=TIP, offset=5)
    assert world.metadata.publish(request).accepted
    world.cycle()
    disabled = replace(STREAMS, state=PolicyState.DISABLED)
    process.effects.after("write .log", lambda: world.set_policy(disabled))

    process.watch.step()

    assert world.stored() == [(0, 5)]


def test_stream_when_an_offload_is_requested_then_seals_at_once() -> None:
    """PIP-76: the manual trigger completes the current segment."""
    world = World(policy=replace(STREAMS, offload_segment_rollover_ms=3_600_000))
    world.produce(10)
    process = world.start()
    world.cycle()
    watch(process)
    before = world.stored()
    request = OffloadRequested(event_id=world.new_id(), topic_id_partition=TIP, offset=10)
    assert world.metadata.publish(request).accepted

    run(world, process)

    assert before == []
    assert world.stored() == [(0, 10)]
    assert process.copy_failure(TIP) is None


def test_stream_when_a_request_is_above_the_log_end_then_it_makes_no_small_segments() -> None:
    """After an unclean election, the log can end below what was requested before."""
    world = World(policy=replace(STREAMS, offload_segment_rollover_ms=3_600_000))
    request = OffloadRequested(event_id=world.new_id(), topic_id_partition=TIP, offset=20)
    assert world.metadata.publish(request).accepted
    process = world.start()
    for _ in range(3):
        world.produce(5)
        run(world, process)
    below = world.stored()

    world.produce(5)
    run(world, process)

    assert below == []
    assert world.stored() == [(0, 20)]


@pytest.mark.parametrize("error", [FencedError, StoppedError])
def test_stream_when_given_up_then_waits_for_the_next_cycle(
    error: type[TieredStorageError],
) -> None:
    """An immediate retry would fail as well, and would write another record."""
    world = World(policy=STREAMS)
    world.produce(10)
    process = world.start()
    process.effects.fail("write .log", error("given up"))
    run(world, process)
    waiting = len(world.records())

    run(world, process)

    assert waiting == 1
    assert (0, 10) in world.stored()


class BlockProcess(Process):
    """A manager that stores segments in Pulsar's blocks."""

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        return (BlockV2Layout(block_bytes=512), RawLayout())


def test_stream_when_it_spans_files_then_a_ledger_for_each_and_reads_back_the_same() -> None:
    world = World(policy=STREAMS, process_type=BlockProcess)
    world.segments(4)
    process = world.start()
    run(world, process)

    (record,) = world.records(SegmentState.COPY_SEGMENT_FINISHED)
    whole = ByteRange(start_position=0, end_position=1 << 30)

    key = record.metadata.objects[1].key
    index = decode_stream_index(world.objects.read_range(key, whole), name=key)

    assert record.metadata.layout == "block_v2"
    assert [each.ledger_id for each in index.ledgers] == [0, 10, 20, 30]
    assert process.ports.storage.fetch_log_segment(record.metadata, whole) == log_bytes(world)


def account(world: World) -> list[tuple[OffloadSegmentStatus, int, OffloadPosition | None]]:
    """Return the status, first offset and end of each offload segment."""
    found = offload_segments(world.metadata, TIP)
    return [(each.status, each.begin.offset, each.end) for each in found]


def test_account_when_streamed_then_has_the_positions_of_each_offload_segment() -> None:
    """PIP-76: ledger, entry and offset of begin and end."""
    world = World(policy=STREAMS)
    world.segments(1)
    world.produce(5)
    process = world.start()
    run(world, process)

    (segment,) = offload_segments(world.metadata, TIP)
    (record,) = world.records()

    assert segment.status is OffloadSegmentStatus.OFFLOADED
    assert segment.segment_ids == (record.metadata.segment_id.id,)
    assert segment.begin == OffloadPosition(ledger_id=0, entry_id=0, offset=0)
    assert segment.end == OffloadPosition(ledger_id=10, entry_id=1, offset=15)


@pytest.mark.parametrize("act", [STARTED, "write .log", "write .meta"])
def test_account_when_an_act_fails_then_the_offload_segment_failed(act: str) -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    process.effects.fail(act, UNREACHABLE)
    world.cycle()
    watch(process, times=6)

    assert account(world) == [(OffloadSegmentStatus.FAILED, 0, None)]


def test_account_when_it_is_lost_then_the_segment_is_stored_all_the_same() -> None:
    world = World(policy=STREAMS)
    world.segments(1)
    process = world.start()
    process.effects.after(
        FINISHED,
        lambda: process.effects.fail("publish OffloadSegmentChanged", UNREACHABLE),
    )

    run(world, process)

    assert world.stored() == [(0, 10)]
    assert account(world) == [(OffloadSegmentStatus.ASSIGNED, 0, None)]
