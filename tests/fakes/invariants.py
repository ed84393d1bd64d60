"""The invariants of a world: at any moment, and when nothing is left to do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from rlm.policy.leftovers import has_never_finished
from rlmm.codec import decode
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.offload_segment import offload_segments
from rlmm.events.policy import topic_policy
from rlmm.events.segment import SegmentEvent
from rsm.layout.keys import ObjectKeys
from rsm.segment.batches.batch import scan_batches
from rsm.segment.epochs import stitch
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.ranges import ByteRange, OffsetRange
from tests.fakes.replica import Replica, batch_header

if TYPE_CHECKING:
    from tests.fakes.world import World

_STARTED = SegmentState.COPY_SEGMENT_STARTED
_LIVING = frozenset(SegmentState) - {SegmentState.DELETE_SEGMENT_FINISHED}


def violations(world: World) -> list[str]:
    """Return what is wrong now, as sentences; empty if all is well.

    Every effect was allowed. Records below the local start are stored and readable, byte for byte.
    Finished segments have their objects unless somebody took them, and no claim stored offsets
    twice. The metadata names each object. The log start is not above what retention allows. Nothing
    of a deleted topic has to be readable.
    """
    found = list(world.audit.violations)
    for tip in world.defined_tips():
        if world.leader(tip).deleted:
            continue
        found.extend(_unreadable_below_local_start(world, tip))
        found.extend(_incomplete_segments(world, tip))
        if world.copies_in_order:
            found.extend(_stored_twice(world, tip))
        found.extend(_streamed_twice(world, tip))
        found.extend(_log_start_too_high(world, tip))
    found.extend(_orphans(world))
    return found


def leftovers(world: World) -> list[str]:
    """Return what is unfinished although nothing changes any more; empty if nothing is."""
    return [
        f"{r.metadata.offsets} is left in {r.metadata.state.name}"
        for tip in world.defined_tips()
        for r in world.records(
            SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED, tip=tip
        )
        if not r.is_dead_lettered
    ]


def first_unreadable(
    world: World, tip: TopicIdPartition, offsets: OffsetRange, truth: Replica
) -> str | None:
    """Read a range from the store as a reader does; return what stops it, or None.

    Skips recorded gaps, and records or objects that somebody else has taken.
    """
    lineage = stitch(world.state(tip).lineage, truth.checkpoint).lineage
    offset = offsets.start_offset
    while offset < offsets.end_offset:
        epoch = lineage.epoch_for_offset(offset)
        metadata = (
            None
            if epoch is None
            else world.metadata.remote_log_segment_metadata(tip, offset, leader_epoch=epoch)
        )
        lost = (*(g.offsets for g in world.state(tip).gaps), *world.taken.get(tip, ()))
        gap = next((offsets for offsets in lost if offset in offsets), None)
        if metadata is None and gap is not None:
            offset = gap.end_offset
            continue
        if epoch is None or metadata is None:
            return f"offset {offset} of epoch {epoch} is not stored"
        # After this epoch, the log and the segment may continue in different epochs.
        ends = (lineage.end_offset(epoch), metadata.segment_leader_epochs.end_offset(epoch))
        end_offset = min(end for end in (*ends, metadata.offsets.end_offset) if end is not None)
        if end_offset <= offset:
            return f"offset {offset} of epoch {epoch} is not in {metadata.offsets}"
        span = OffsetRange(start_offset=offset, end_offset=end_offset)
        if _is_away(world, metadata):
            offset = end_offset
            continue
        if _stored_batches(world, metadata, span) != truth.batches(span):
            return f"{span} is stored with other bytes than were written"
        offset = end_offset
    return None


def _is_away(world: World, metadata: RemoteLogSegmentMetadata) -> bool:
    """Return whether somebody took an object: readers wait until it is back, or copied again."""
    keys = list(metadata.object_keys)
    return any(key in world.damaged_objects and not world.objects.exists(key) for key in keys)


def is_whole(world: World, metadata: RemoteLogSegmentMetadata) -> bool:
    """Return whether the store has all objects of a segment as they were recorded."""
    for stored in metadata.objects:
        if not world.objects.exists(stored.key):
            return False
        info = world.objects.info(stored.key)
        if (info.length_bytes, info.crc32c) != (stored.length_bytes, stored.crc32c):
            return False
    return True


def _stored_batches(
    world: World, metadata: RemoteLogSegmentMetadata, span: OffsetRange
) -> list[bytes]:
    if not all(world.objects.exists(stored.key) for stored in metadata.objects):
        return []
    whole = ByteRange(start_position=0, end_position=metadata.segment_size_bytes)
    content = world.storage.fetch_log_segment(metadata, whole)
    return [
        content[position : position + header.length_bytes]
        for position, header in scan_batches(memoryview(content))
        if header.base_offset in span
    ]


def _unreadable_below_local_start(world: World, tip: TopicIdPartition) -> Iterator[str]:
    log_start = world.state(tip).first_readable_offset
    leader = world.leader(tip)
    if log_start is not None and log_start < leader.log_start_offset:
        span = OffsetRange(start_offset=log_start, end_offset=leader.log_start_offset)
        if (problem := first_unreadable(world, tip, span, leader)) is not None:
            yield f"{tip} below the local start: {problem}"


def _incomplete_segments(world: World, tip: TopicIdPartition) -> Iterator[str]:
    for record in world.records(SegmentState.COPY_SEGMENT_FINISHED, tip=tip):
        for stored in record.metadata.objects:
            if stored.key in world.damaged_objects:
                continue
            if not world.objects.exists(stored.key):
                yield f"{stored.key} of a finished segment is gone"
                continue
            info = world.objects.info(stored.key)
            if (info.length_bytes, info.crc32c) != (stored.length_bytes, stored.crc32c):
                yield f"{stored.key} is not what was recorded"


def _stored_twice(world: World, tip: TopicIdPartition) -> Iterator[str]:
    """Yield what one claim has stored twice although its process knew what was stored.

    After a hole, a manager copies everything again; in-order copies leave no hole. Records below
    the start of the writer's log may come again with a whole file. Deleted and damaged segments do
    not count, nor do copies of the same offsets: whole files replace streamed segments, and may
    overlap the copies next to those. Merged segments have the records of their parts.
    """
    if world.unwanted:
        return
    merges = world.settings.limits.merges_streams
    log_start_offset = world.leader(tip).log_start_offset
    end_offsets: dict[Writer, int] = {}
    finished = world.records(SegmentState.COPY_SEGMENT_FINISHED, tip=tip)
    for record in finished:
        writer, offsets = record.metadata.writer, record.metadata.offsets
        if merges and any(_is_part(offsets, other.metadata.offsets) for other in finished):
            continue
        if any(offsets.overlaps(damaged) for damaged in world.damaged_offsets.get(tip, ())):
            continue
        own_start_offset = world.hosts[writer.broker_id].replicas[tip].highest_start_offset
        start_offset = max(offsets.start_offset, own_start_offset, log_start_offset)
        if start_offset < end_offsets.get(writer, 0):
            yield f"{tip}: {offsets} is stored twice by one claim"
        end_offsets[writer] = max(offsets.end_offset, end_offsets.get(writer, 0))


def _streamed_twice(world: World, tip: TopicIdPartition) -> Iterator[str]:
    """Yield what two brokers have streamed of one history, although the later one fences the other.

    A start that lands after the other's claim is fenced by its next cycle, which may be too late.
    Damaged segments do not count. An unclean election may lead to another history.
    """
    streams = {each.id for each in offload_segments(world.metadata, tip)}
    streamed = [
        record.metadata
        for record in world.records(SegmentState.COPY_SEGMENT_FINISHED, tip=tip)
        if record.metadata.segment_id.id in streams
        and not any(map(record.metadata.offsets.overlaps, world.damaged_offsets.get(tip, ())))
    ]
    for first, second in combinations(streamed, 2):
        earlier, later = sorted((first, second), key=lambda each: each.writer.leader_epoch)
        if (
            earlier.writer.broker_id != later.writer.broker_id
            and first.offsets.overlaps(second.offsets)
            and _have_one_history(first, second)
            and _has_started_before_claim(world, earlier, later.writer)
        ):
            yield f"{tip}: {first.offsets} and {second.offsets} were streamed by two brokers"


def _have_one_history(first: RemoteLogSegmentMetadata, second: RemoteLogSegmentMetadata) -> bool:
    both = OffsetRange(
        start_offset=max(first.offsets.start_offset, second.offsets.start_offset),
        end_offset=min(first.offsets.end_offset, second.offsets.end_offset),
    )
    lineages = [each.segment_leader_epochs.within(both) for each in (first, second)]
    return lineages[0] == lineages[1]


def _has_started_before_claim(
    world: World, metadata: RemoteLogSegmentMetadata, writer: Writer
) -> bool:
    """Return whether the start of a segment is below a writer's claim in the metadata topic."""
    started, claimed, tip = None, None, metadata.topic_id_partition
    for record in world.topic.records(0):
        event = None if record.value is None else decode(record.key, record.value)
        if isinstance(event, SegmentEvent):
            found = event.metadata
            if (found.segment_id, found.state) == (metadata.segment_id, _STARTED):
                started = record.offset
        elif isinstance(event, LeadershipClaimed) and event.topic_id_partition == tip:
            claimed = record.offset if event.writer == writer else claimed
    return started is not None and claimed is not None and started < claimed


def _is_part(offsets: OffsetRange, other: OffsetRange) -> bool:
    """Return whether another segment has all of these offsets, and more."""
    is_within = (
        other.start_offset <= offsets.start_offset and offsets.end_offset <= other.end_offset
    )
    return is_within and other != offsets


def _log_start_too_high(world: World, tip: TopicIdPartition) -> Iterator[str]:
    state = world.state(tip)
    # Until the unclean leader has claimed the partition, the deposed one decides about its log.
    lineage = stitch(state.lineage, world.leader(tip).checkpoint).lineage
    log_start = max((start.within(lineage) for start in state.log_starts), default=None)
    allowed = max(allowed_log_start(world, tip), world.allowed_before.get(tip, 0))
    if log_start is not None and log_start > allowed:
        yield f"{tip} starts at {log_start}, retention allows {allowed}"


def allowed_log_start(world: World, tip: TopicIdPartition) -> int:
    """Return the highest log start allowed now, by retention and by clients' deletions."""
    return max(_retention_end(world, tip), world.deleted_below.get(tip, 0))


def _retention_end(world: World, tip: TopicIdPartition) -> int:
    """Return the end of the oldest batches that exceed a retention limit, by the true log alone."""
    policy = topic_policy(world.metadata, tip.topic_id)
    leader = world.leader(tip)
    if policy is None or policy.delete_remote:
        return leader.log_start_offset
    left_bytes = sum(file.size_bytes for file in leader.files)
    now_ms = world.clock.wall_ms()
    started_offset = world.started_at_offset.get(tip, 0)
    for batch in (batch for file in leader.files for batch in file.batches):
        header = batch_header(batch)
        left_bytes -= len(batch)
        too_old = 0 <= policy.retention_ms < now_ms - header.max_timestamp_ms
        too_much = 0 <= policy.retention_bytes <= left_bytes
        if not (too_old or too_much or started_offset >= header.next_offset):
            return max(header.base_offset, started_offset)
    return leader.end_offset


def _orphans(world: World) -> Iterator[str]:
    for name in world.object_names():
        key = ObjectKeys().parse(name)
        record = None if key is None else world.metadata.segment(key.segment_id)
        if record is not None and world.has_late_writers and has_never_finished(record):
            continue  # a manager deletes it once more before its purge
        if record is None or record.metadata.state not in _LIVING:
            yield f"{name} is named by nothing"
