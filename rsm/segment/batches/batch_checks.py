"""Checks record batches before they count as stored and before they are served.

The checks cover a batch's size, CRC, record count and leader epoch, and its offsets, which must
ascend. Copies of segments, scans of stored logs, and the gateway's reads of chunks use `check_run`.
This module does not know where the bytes come from. Pure.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crc32c import crc32c

from rsm.segment.batches.batch import (
    CRC_COVERED_FROM,
    HEADER_BYTES,
    LEGACY_CRC_COVERED_FROM,
    LOG_OVERHEAD_BYTES,
    MAGIC_POSITION,
    MAX_BATCH_BYTES,
    batch_length_bytes,
    parse_header,
)
from rsm.segment.batches.batch_run import BatchRun
from rsm.segment.batches.expectations import BatchExpectation
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OffsetIndexEntry

_NO_END = 1 << 63
# Base offset, length, leader epoch, magic, CRC, last offset delta and record count of a batch v2.
_CHECKED_FIELDS = struct.Struct(">qiibI2xi30xi")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """Represents the end of a check: a position, or the end of the batch that reaches `offset`."""

    position: int = _NO_END
    offset: int = _NO_END

    def is_reached(self, position: int, next_offset: int) -> bool:
        return position >= self.position or next_offset > self.offset


NO_END = RunEnd()


def check_run(
    run: BatchRun,
    buffer: memoryview,
    buffer_position: int,
    expectation: BatchExpectation,
    until: RunEnd = NO_END,
) -> None:
    """Check the batches of `buffer` that follow `run`, and add them to `run`.

    Ends at `until` or at a batch whose end is not in the buffer. `buffer_position` is the buffer's
    position in the log. Raises CorruptError at an invalid batch; the batches before it are added.
    """
    end, end_offset = len(buffer), expectation.end_offset
    until_position, until_offset = until.position - buffer_position, until.offset
    position, next_offset = run.end_position - buffer_position, run.next_offset
    epoch, epoch_end_offset = None, next_offset
    while position < until_position and next_offset <= until_offset:
        # Nearly every batch is whole and valid and has magic 2: unpack its fields in place.
        if end - position >= HEADER_BYTES:
            base_offset, length, batch_epoch, magic, crc, delta, count = (
                _CHECKED_FIELDS.unpack_from(buffer, position)
            )
            size, last_offset = length + LOG_OVERHEAD_BYTES, base_offset + delta
            if (
                magic == 2
                and HEADER_BYTES <= size <= MAX_BATCH_BYTES
                and position + size <= end
                and crc32c(buffer[position + CRC_COVERED_FROM : position + size]) == crc
                and next_offset <= base_offset <= last_offset < end_offset
                and count >= 0
            ):
                if batch_epoch != epoch or last_offset >= epoch_end_offset:
                    where = buffer_position + position
                    epoch_end_offset = expectation.enter_epoch(
                        batch_epoch, base_offset, last_offset, where
                    )
                    epoch = batch_epoch
                next_offset = last_offset + 1
                position += size
                run.append(buffer_position + position, base_offset, next_offset)
                continue
        whole_bytes = batch_length_bytes(buffer, position, base_position=buffer_position)
        if whole_bytes is None or position + whole_bytes > end:
            return
        check_batch(run, (buffer[position : position + whole_bytes],), expectation)
        position, next_offset = run.end_position - buffer_position, run.next_offset


def check_batch(run: BatchRun, batch: Sequence[memoryview], expectation: BatchExpectation) -> None:
    """Check one whole batch that follows `run`, and add it. Raises CorruptError if it is invalid.

    The batch may be in several buffers. `batch_length_bytes` must have checked its magic and size.
    """
    position, beginning = run.end_position, _beginning(batch)
    epoch: int | None
    if beginning[MAGIC_POSITION] < 2:
        header = parse_header(beginning, base_position=position)
        base_offset, crc, epoch, delta, count = header.base_offset, header.crc, None, 0, 0
        length = header.length_bytes - LOG_OVERHEAD_BYTES
        found_crc = _crc(batch, LEGACY_CRC_COVERED_FROM, zlib.crc32)
    else:
        base_offset, length, epoch, _, crc, delta, count = _CHECKED_FIELDS.unpack_from(beginning)
        found_crc = _crc(batch, CRC_COVERED_FROM, crc32c)
    if found_crc != crc:
        raise CorruptError(
            "the batch's CRC is wrong", position=position, expected=crc, found=found_crc
        )
    # The CRC covers neither the base offset nor the leader epoch.
    last_offset = base_offset + delta
    if not run.next_offset <= base_offset <= last_offset < expectation.end_offset:
        raise expectation.wrong_offsets(base_offset, delta, run.next_offset, position)
    if count < 0:
        raise CorruptError(
            "the record count is negative", position=position, expected=">= 0", found=count
        )
    if epoch is not None:
        expectation.enter_epoch(epoch, base_offset, last_offset, position)
    run.append(position + length + LOG_OVERHEAD_BYTES, base_offset, last_offset + 1)


def require_index_agrees(base_offset: int, entry: OffsetIndexEntry) -> None:
    """Raise CorruptError if an index entry led to a batch above the entry's offset."""
    if entry.position > 0 and base_offset > entry.offset:
        expected, found = f"<= {entry.offset}", base_offset
        message = "the offset index does not match the log"
        raise CorruptError(message, expected=expected, found=found)


def require_outside(base_offset: int, end_offset: int) -> None:
    """Raise CorruptError if a batch that ends above the readable part begins within it.

    No valid batch does, because the readable part ends where a leader epoch or the segment ends.
    """
    if base_offset < end_offset:
        expected, found = end_offset, base_offset
        raise CorruptError("a batch crosses its lineage's end", expected=expected, found=found)


def _beginning(batch: Sequence[memoryview]) -> memoryview:
    """Return one buffer that contains the batch's header; the whole batch if it is smaller."""
    if len(batch) == 1 or len(batch[0]) >= HEADER_BYTES:
        return batch[0]
    beginning = bytearray()
    for piece in batch:
        beginning += piece[: HEADER_BYTES - len(beginning)]
    return memoryview(bytes(beginning))


def _crc(
    batch: Sequence[memoryview], covered_from: int, checksum: Callable[[memoryview, int], int]
) -> int:
    crc = 0
    for piece in batch:
        covered = piece[covered_from:]
        covered_from -= len(piece) - len(covered)
        crc = checksum(covered, crc)
    return crc
