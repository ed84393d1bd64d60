"""Divides a log segment into entries and blocks, by the positions and lengths of its batches.

Uses the batch extents that the log offers; without them it scans the log's bytes. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rsm.layout.block_v1.block_format import ENTRY_HEADER_BYTES
from rsm.layout.block_v1.block_plan import BlockPlanner, PlannedBlock
from rsm.layout.block_v1.log_points import LogPointsBuilder
from rsm.segment.batches.batch import scan_batches
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.local_segment import ContentSource, LogSegmentData


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedLog:
    """The blocks of a log, the number of its batches, and the encoded log points."""

    blocks: tuple[PlannedBlock, ...]
    entry_count: int
    log_points: bytes

    @property
    def data_bytes(self) -> int:
        """The length of the data object."""
        last = self.blocks[-1]
        return last.position + last.block_bytes


def divide_log(data: LogSegmentData, block_bytes: int) -> DividedLog:
    """Divide a segment's log. UnsupportedError for an empty one, and the errors of its scan."""
    planner = BlockPlanner(block_bytes=block_bytes)
    points = LogPointsBuilder()
    blocks: list[PlannedBlock] = []
    log_position = pending_bytes = pending_count = 0
    room_bytes = due_position = 0
    for base_offset, length_bytes in _extents(data):
        room_bytes -= ENTRY_HEADER_BYTES + length_bytes
        if room_bytes >= 0 and log_position < due_position:  # neither block nor log point begins
            pending_bytes += length_bytes
            pending_count += 1
        else:
            planner.add_fitting(pending_count, pending_bytes)
            pending_bytes = pending_count = 0
            full = planner.add(length_bytes)
            if full is not None:
                blocks.append(full)
            entry_id = planner.next_entry_id - 1
            due_position = points.add(entry_id, log_position, base_offset)
            room_bytes = planner.room_bytes
        log_position += length_bytes
    if not log_position:
        raise UnsupportedError("a segment without batches", offsets=data.offsets)
    planner.add_fitting(pending_count, pending_bytes)
    blocks.append(planner.finish())
    return DividedLog(
        blocks=tuple(blocks), entry_count=planner.next_entry_id, log_points=points.encode()
    )


def _extents(data: LogSegmentData) -> Iterator[tuple[int, int]]:
    return _scan(data.log) if data.batches is None else data.batches()


def _scan(log: ContentSource) -> Iterator[tuple[int, int]]:
    """Yield the batches of a log without extents; buffers a chunk and one batch."""
    rest = b""
    base_position = 0
    for view in log.chunks():
        buffer = memoryview(rest + view)
        consumed = 0
        for position, header in scan_batches(buffer, base_position=base_position):
            consumed = position - base_position + header.length_bytes
            yield header.base_offset, header.length_bytes
        rest = bytes(buffer[consumed:])
        base_position += consumed
    if rest:
        raise CorruptError("last batch cut short", position=base_position)
