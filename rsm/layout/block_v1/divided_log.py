"""Divides a log segment into entries and blocks, given its batches' offsets and lengths. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rsm.layout.blocks.block_format import ENTRY_HEADER_BYTES
from rsm.layout.blocks.block_plan import BlockPlanner, PlannedBlock
from rsm.layout.blocks.log_points import LogPointsBuilder
from rsm.segment.errors import UnsupportedError


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedLog:
    """Represents the division of a log: its blocks, its number of batches, its log points."""

    blocks: tuple[PlannedBlock, ...]
    entry_count: int
    log_points: bytes

    @property
    def data_bytes(self) -> int:
        """Return the length of the data object."""
        last = self.blocks[-1]
        return last.position + last.block_bytes


def divide_log(batches: Iterable[tuple[int, int]], *, block_bytes: int) -> DividedLog:
    """Divide a log, given the (base offset, length) of each batch.

    Raises UnsupportedError for an empty log.
    """
    planner = BlockPlanner(block_bytes=block_bytes)
    points = LogPointsBuilder()
    blocks: list[PlannedBlock] = []
    log_position = pending_bytes = pending_count = 0
    room_bytes = due_position = 0
    for base_offset, length_bytes in batches:
        room_bytes -= ENTRY_HEADER_BYTES + length_bytes
        if room_bytes >= 0 and log_position < due_position:  # No block or log point begins here.
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
        raise UnsupportedError("cannot store a segment without batches in layout block_v1")
    planner.add_fitting(pending_count, pending_bytes)
    blocks.append(planner.finish())
    return DividedLog(
        blocks=tuple(blocks), entry_count=planner.next_entry_id, log_points=points.encode()
    )
