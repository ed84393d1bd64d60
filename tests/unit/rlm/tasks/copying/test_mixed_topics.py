"""R23: one topic of copied and streamed segments in all layouts, from which ledgers are deleted."""

from __future__ import annotations

from dataclasses import replace

from rlm.remote_read.reader import RemoteLogReader
from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.block_v2.offload_context import OffloadContext, OffloadSegment
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.pulsar.offloader import open_offloader
from rsm.read.segment_scan import ScanSettings
from rsm.segment.batches.batch import scan_batches
from rsm.segment.local_segment import BytesSource
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.offload_settings import OffloadMode
from rsm.segment.ranges import ByteRange
from rsm.storage.memory import MemoryChunkStorage
from tests.fakes.executor import SynchronousExecutor
from tests.fakes.invariants import violations
from tests.fakes.process import Process
from tests.fakes.world import KEEP_REMOTE, SEGMENT_RECORDS, TIP, World

ROLLOVER_MS = 2_000
COPIES = replace(KEEP_REMOTE, local_retention_ms=-1, layout="raw")
STREAMS = replace(
    COPIES,
    offload_mode=OffloadMode.STREAM,
    offload_segment_max_bytes=1 << 20,
    offload_segment_rollover_ms=ROLLOVER_MS,
)
WHOLE = ByteRange(start_position=0, end_position=1 << 30)
LEDGERS = (10, 20, 30)
"""The ledgers of the streamed segment, one for each local log segment."""


class AllLayouts(Process):
    """A manager that streams in block_v2, and copies in the layout of the topic's policy."""

    def make_layouts(self) -> tuple[SegmentLayout, ...]:
        return (BlockV2Layout(block_bytes=512), RawLayout(), BlockV1Layout(block_bytes=512))


def mixed() -> tuple[World, Process]:
    """Return a topic of a raw copy, a streamed segment of three ledgers, and two block copies."""
    world = World(policy=COPIES, process_type=AllLayouts)
    process = world.start()
    world.segments(1)
    world.settle()
    world.segments(len(LEDGERS))
    world.set_policy(STREAMS)
    world.cycle()
    for _ in range(12):
        process.watch.step()
        world.clock.advance(ROLLOVER_MS // 5)
    for layout in ("block_v1", "block_v2"):
        world.set_policy(replace(COPIES, layout=layout))
        world.segments(1)
        world.settle()
    return world, process


def finished(world: World) -> list[RemoteLogSegmentMetadata]:
    return [each.metadata for each in world.records(SegmentState.COPY_SEGMENT_FINISHED)]


def read(world: World, process: Process, from_offset: int) -> bytes:
    """Return all batches from an offset on, as a reader of the store gets them."""
    reader = RemoteLogReader(
        world.metadata, process.ports.storage, SynchronousExecutor(), ScanSettings(ahead_count=0)
    )
    return b"".join(bytes(run.data) for run in reader.scan(TIP, from_offset))


def written(world: World, from_offset: int, end_offset: int = 1 << 30) -> bytes:
    """Return the log's batches between offsets at which batches begin."""
    log = memoryview(b"".join(file.content for file in world.leader().files))
    return b"".join(
        bytes(log[position : position + header.length_bytes])
        for position, header in scan_batches(log)
        if from_offset <= header.base_offset < end_offset
    )


def ledger_of(world: World, streamed: RemoteLogSegmentMetadata, ledger_id: int) -> bytes:
    """Return a ledger's entries, as Pulsar's offloader reads them by its own object names."""
    bucket = MemoryChunkStorage(wall_ms=world.clock.wall_ms)
    for stored in streamed.objects[:2]:
        bucket.create_with_content(
            stored.key.rpartition("/")[2],
            BytesSource(content=world.objects.read_range(stored.key, WHOLE)),
            attributes=world.objects.info(stored.key).attributes,
        )
    context = OffloadContext(segments=(OffloadSegment(uuid=streamed.segment_id.id),))
    found = open_offloader(bucket).read_offloaded(ledger_id, context)
    return b"".join(data for _, data in found.entries())


def test_ledgers_when_deleted_one_by_one_then_the_object_is_deleted_with_the_last() -> None:
    """Scenario 125: the others stay readable meanwhile, and so do the copies next to them."""
    world, process = mixed()
    streamed = finished(world)[1]
    kept_until = []

    for ledger_id in LEDGERS:
        end_offset = ledger_id + SEGMENT_RECORDS
        kept_until.append([world.objects.exists(each.key) for each in streamed.objects])
        assert read(world, process, ledger_id) == written(world, ledger_id)
        assert ledger_of(world, streamed, ledger_id) == written(world, ledger_id, end_offset)
        world.request_log_start(end_offset)
        world.settle()

    assert all(all(each) for each in kept_until)
    assert not any(world.objects.exists(each.key) for each in streamed.objects)
    assert [(each.offsets.start_offset, each.layout) for each in finished(world)] == [
        (40, "block_v1"),
        (50, "block_v2"),
    ]
    assert read(world, process, 40) == written(world, 40)
    assert violations(world) == []


def test_topic_when_copied_and_streamed_then_has_all_layouts_and_reads_as_one_log() -> None:
    world, process = mixed()

    stored = finished(world)

    assert [(str(each.offsets), each.layout) for each in stored] == [
        ("[0, 10)", "raw"),
        ("[10, 40)", "block_v2"),
        ("[40, 50)", "block_v1"),
        ("[50, 60)", "block_v2"),
    ]
    assert read(world, process, 0) == written(world, 0)
