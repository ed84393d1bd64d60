"""Small streamed segments are merged into one, and deleted once it has their records (PIP-76)."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from rlm.policy.stream.merging import SegmentMerge
from rlm.policy.view import PolicyLimits
from rlm.tasks.integrity.damage_proof import DamageProof
from rlmm.events.read_lease import ReadLeaseTaken
from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.segment.coverage import stored_ranges
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState
from rsm.segment.ranges import ByteRange, OffsetRange
from rsm.spi import IndexType
from tests.fakes.gateways import gateway_at
from tests.fakes.invariants import first_unreadable, leftovers, violations
from tests.fakes.process import Process, ProcessSettings
from tests.fakes.world import TIP, World
from tests.log_records import fields_of, message_of
from tests.unit.rlm.tasks.copying.test_streams import (
    SEGMENTS,
    STREAMS,
    log_bytes,
    run,
    stored_bytes,
)

FINISHED = SegmentState.COPY_SEGMENT_FINISHED
PARTS = 4
RECORDS = 15
END = PARTS * RECORDS
MERGES = ProcessSettings(limits=PolicyLimits(local_trim_min_age_ms=0, merges_streams=True))


class MergingWorld(World):
    """One broker, whose partition has some streamed segments; the broker has no more records."""

    def __init__(
        self,
        *,
        parts: int = PARTS,
        process_type: type[Process] = Process,
        local_retention_ms: int = 0,
    ) -> None:
        self.plain = replace(MERGES, limits=replace(MERGES.limits, merges_streams=False))
        super().__init__(policy=STREAMS, settings=self.plain, process_type=process_type)
        process = self.start()
        for _ in range(parts):
            self.stream_part(process)
        self.set_policy(replace(STREAMS, local_retention_ms=local_retention_ms))
        self.pass_cycles(4)
        process.effects.crashed = True
        self.settings = MERGES
        self.parts = self.records(FINISHED)
        self.process = self.start()

    def stream_part(self, process: Process) -> None:
        self.produce(10)
        self.roll()
        self.produce(5)
        run(self, process)

    def pass_cycles(self, count: int = 8) -> None:
        for _ in range(count):
            self.cycle()

    def broken(self) -> list[str]:
        """Return what stops a reader of the store alone, and all violations and leftovers."""
        stored = OffsetRange(start_offset=0, end_offset=END)
        unreadable = first_unreadable(self, TIP, stored, self.leader())
        return [*filter(None, [unreadable]), *violations(self), *leftovers(self)]


def published(process: Process) -> list[str]:
    return [name for name in process.effects.performed if "_SEGMENT_" in name]


def counted(process: Process, name: str) -> float:
    return process.metrics.registry.get_sample_value(name, {"topic": "orders"}) or 0


def test_merge_when_small_segments_adjoin_then_one_has_their_records_and_they_are_deleted() -> None:
    world = MergingWorld()

    world.pass_cycles()

    assert len(world.parts) == PARTS
    assert world.stored() == [(0, END)]
    assert world.leader().log_start_offset > 0
    (record,) = world.records(FINISHED)
    assert record.metadata.segment_size_bytes == sum(
        part.metadata.segment_size_bytes for part in world.parts
    )
    assert world.broken() == []
    assert not any(
        world.objects.exists(stored.key) for part in world.parts for stored in part.metadata.objects
    )


def test_merge_when_it_runs_then_it_is_finished_before_the_first_part_is_deleted() -> None:
    world = MergingWorld()

    world.pass_cycles()

    order = published(world.process)
    assert order[:2] == ["publish COPY_SEGMENT_STARTED", "publish COPY_SEGMENT_FINISHED"]
    assert order[2:].count("publish DELETE_SEGMENT_STARTED") == PARTS
    assert order[2:].count("publish DELETE_SEGMENT_FINISHED") == PARTS


def test_merge_when_done_then_its_bytes_and_epochs_are_the_parts_and_the_metrics_count() -> None:
    world = MergingWorld(local_retention_ms=-1)
    size = sum(part.metadata.segment_size_bytes for part in world.parts)

    world.pass_cycles()

    (record,) = world.records(FINISHED)
    metadata, storage = record.metadata, world.process.ports.storage
    assert stored_bytes(world) == log_bytes(world)
    assert metadata.segment_leader_epochs == world.parts[0].metadata.segment_leader_epochs
    assert metadata.max_timestamp_ms == world.parts[-1].metadata.max_timestamp_ms
    assert storage.fetch_index(metadata, IndexType.LEADER_EPOCH)
    assert counted(world.process, "rlm_stream_merge_bytes_total") == size
    assert counted(world.process, "rlm_stream_merged_segments_total") == PARTS
    assert counted(world.process, "kafka_server_remote_copy_bytes_total") == 0


def test_merge_when_merges_are_off_then_the_segments_stay() -> None:
    world = MergingWorld()
    world.settings = world.plain
    world.process = world.restart()

    world.pass_cycles()

    assert world.records(FINISHED) == world.parts


def test_merge_when_the_topic_is_no_longer_streamed_then_the_segments_stay() -> None:
    world = MergingWorld()
    world.set_policy(SEGMENTS)

    world.pass_cycles()

    assert len(world.stored()) == PARTS


def test_merge_when_the_topic_is_no_longer_streamed_at_its_slot_then_it_is_given_up() -> None:
    """Its parts would never be deleted: only a streamed partition replaces segments."""
    world = MergingWorld()
    lineage = world.state().lineage
    merge = SegmentMerge(parts=stored_ranges(lineage, (part.metadata for part in world.parts)))
    world.set_policy(SEGMENTS)
    world.cycle()
    (task,) = world.process.leadership.led()

    is_queued = world.process.merges.offer(task, merge, lineage)

    assert is_queued
    assert len(world.stored()) == PARTS
    assert published(world.process) == []


ACTS = (
    "publish COPY_SEGMENT_STARTED",
    "write .log",
    "write .meta",
    "publish COPY_SEGMENT_FINISHED",
    "publish DELETE_SEGMENT_STARTED",
    "delete .log",
    "delete .meta",
    "publish DELETE_SEGMENT_FINISHED",
)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("act", ACTS)
def test_merge_when_the_process_dies_at_any_act_then_the_next_one_ends_it(
    act: str, moment: str
) -> None:
    world = MergingWorld()
    effects = world.process.effects
    (effects.after if moment == "after" else effects.before)(act, effects.crash)
    world.pass_cycles()
    has_died = not world.process.alive
    while_dead = world.broken()

    world.process = world.start()
    world.pass_cycles(16)

    assert has_died
    assert [each for each in while_dead if "is left in" not in each] == []
    assert world.stored() == [(0, END)]
    assert world.broken() == []


@pytest.mark.parametrize("act", ["write .log", "write .meta", "publish COPY_SEGMENT_FINISHED"])
def test_merge_when_an_act_fails_then_it_is_tried_again_and_nothing_is_left(act: str) -> None:
    world = MergingWorld()
    world.process.effects.fail(act, RetriableError("store cannot be reached"))

    world.pass_cycles(12)

    assert counted(world.process, "rlm_stream_merge_errors_total") == 1
    assert world.stored() == [(0, END)]
    assert world.broken() == []


def test_merge_when_it_fails_then_the_log_names_the_merge_and_its_facts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log must not call the merge a copy, because the records are stored already."""
    world = MergingWorld()
    caplog.set_level(logging.INFO, "rlm.tasks.copying")
    world.process.effects.fail("write .log", RetriableError("store cannot be reached"))

    world.pass_cycles(12)

    failed, merged, again = caplog.records
    assert [message_of(each) for each in (failed, merged, again)] == [
        "merge failed",
        "merged segments",
        "merges succeed again",
    ]
    facts = {"base_offset": 0, "end_offset": END, "segments": PARTS}
    assert facts.items() <= fields_of(failed).items()
    assert fields_of(failed)["bytes"] == fields_of(merged)["bytes"]
    assert (failed.levelname, fields_of(failed)["attempts"]) == ("WARNING", 1)


def test_merge_when_another_broker_leads_by_then_nothing_is_published() -> None:
    world = MergingWorld()
    world.process.effects.after("write .meta", lambda: world.elect(1))

    world.cycle()

    assert world.stored() == [
        (part.metadata.offsets.start_offset, part.metadata.offsets.end_offset)
        for part in world.parts
    ]
    assert [each for each in world.broken() if "is left in" not in each] == []


def test_merge_when_a_part_is_deleted_meanwhile_then_the_attempt_is_given_up() -> None:
    world = MergingWorld()
    world.process.effects.after("write .meta", lambda: world.request_log_start(RECORDS, tip=TIP))

    world.pass_cycles(12)

    assert violations(world) + leftovers(world) == []


def lease_all(world: MergingWorld) -> None:
    event = ReadLeaseTaken(
        event_id=world.new_id(),
        topic_id_partition=TIP,
        lease_id=world.new_id(),
        offsets=OffsetRange(start_offset=0, end_offset=END),
        duration_ms=600_000,
        holder="job",
    )
    assert world.metadata.publish(event).accepted


def test_parts_when_a_lease_was_taken_then_they_stay_until_it_ends() -> None:
    world = MergingWorld()
    lease_all(world)
    world.pass_cycles(8)
    while_leased = len(world.stored())
    objects = [s.key for part in world.parts for s in part.metadata.objects]
    all_there = all(world.objects.exists(key) for key in objects)

    world.pass_cycles(24)

    assert (while_leased, all_there) == (PARTS + 1, True)
    assert world.stored() == [(0, END)]
    assert world.broken() == []


def test_merge_when_a_lease_has_the_parts_of_an_earlier_one_then_later_segments_are_merged() -> (
    None
):
    world = MergingWorld()
    lease_all(world)
    world.cycle()
    for _ in range(PARTS):
        world.stream_part(world.process)

    world.pass_cycles(4)

    parts = [(n * RECORDS, (n + 1) * RECORDS) for n in range(PARTS)]
    assert sorted(world.stored()) == sorted([(0, END), *parts, (END, 2 * END)])
    assert violations(world) == []


def test_parts_when_a_gateway_does_not_know_of_the_merge_then_their_objects_stay() -> None:
    world = MergingWorld()
    objects = [stored.key for part in world.parts for stored in part.metadata.objects]
    for _ in range(8):
        gateway_at(world, 0)
        world.clock.advance(1_000)
        world.process.step()
    while_behind = [world.objects.exists(key) for key in objects]
    merged = world.stored()
    gateway_at(world, world.topic.end_offset(0))

    world.process.step()

    assert merged == [(0, END)]
    assert all(while_behind)
    assert not any(world.objects.exists(key) for key in objects)


class WithLosses(DamageProof):
    """Removes the merged segment's log right before the last check."""

    world: MergingWorld

    def require(self, action: object) -> None:
        for record in self.world.records(FINISHED):
            if record.metadata.offsets.end_offset - record.metadata.offsets.start_offset == END:
                key = record.metadata.objects[0].key
                if self.world.objects.exists(key):
                    self.world.damaged_objects.add(key)
                    self.world.objects.delete(key)
        super().require(action)  # type: ignore[arg-type]  # as it is called


class LosingProcess(Process):
    proof: WithLosses

    def make_proof(self) -> DamageProof:
        self.proof = WithLosses(self.ports, self.stopping)
        return self.proof


def test_parts_when_the_merged_segment_is_lost_at_the_last_moment_then_they_stay() -> None:
    world = MergingWorld(process_type=LosingProcess)
    assert isinstance(world.process, LosingProcess)
    world.process.proof.world = world

    world.pass_cycles(6)

    left = {record.metadata.segment_id for record in world.records(FINISHED)}
    assert left >= {part.metadata.segment_id for part in world.parts}


class Blocks(Process):
    """Streams in blocks; copies and merges in `layout`."""

    layout: SegmentLayout = BlockV2Layout(block_bytes=1 << 20)

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        others = (RawLayout(), BlockV1Layout(), BlockV2Layout())
        return (self.layout, *(each for each in others if each.name != self.layout.name))


class BlocksV1(Blocks):
    layout = BlockV1Layout()


class RawAgain(Blocks):
    layout = RawLayout()


@pytest.mark.parametrize("merged_as", [Blocks, BlocksV1, RawAgain])
@pytest.mark.parametrize("streamed_as", [Blocks, BlocksV1, RawAgain])
def test_merge_when_layouts_differ_then_the_log_is_byte_for_byte_the_same(
    streamed_as: type[Process], merged_as: type[Blocks]
) -> None:
    world = MergingWorld(process_type=streamed_as, local_retention_ms=-1)
    world.process.effects.crashed = True
    world.process = world.start(process_type=merged_as)

    world.pass_cycles()

    (record,) = world.records(FINISHED)
    whole = record.metadata
    assert whole.layout == merged_as.layout.name
    span = ByteRange(start_position=0, end_position=whole.segment_size_bytes)
    assert world.process.ports.storage.fetch_log_segment(whole, span) == log_bytes(world)
    assert violations(world) + leftovers(world) == []
