"""Checks a stored record batch before it may be served.

The checks cover its CRC, its offsets, which must ascend within the segment's, and its leader epoch.
Pure.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from crc32c import crc32c

from rsm.segment.batches.batch import (
    CRC_COVERED_FROM,
    HEADER_BYTES,
    LEGACY_CRC_COVERED_FROM,
    LOG_OVERHEAD_BYTES,
    MAGIC_POSITION,
    NO_EPOCH,
    V2_HEADER,
    BatchHeader,
    parse_header,
)
from rsm.segment.batches.batch_run import BatchRun
from rsm.segment.errors import CorruptError
from rsm.segment.indexes import OffsetIndexEntry
from rsm.segment.metadata import RemoteLogSegmentMetadata

_NO_END = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The end of a check: a position, or the first batch that reaches above an offset."""

    position: int = _NO_END
    offset: int = _NO_END

    def reached(self, position: int, next_offset: int) -> bool:
        return position >= self.position or next_offset > self.offset


def checked_header(
    batch: Sequence[memoryview],
    metadata: RemoteLogSegmentMetadata,
    *,
    position: int,
    at_least_offset: int,
) -> BatchHeader:
    """Check one whole batch, whose bytes may be in several buffers.

    `position` is its position in the log, `at_least_offset` its lowest valid base offset. Raises
    CorruptError. The reader makes the checks that depend on its view of the log.
    """
    header = parse_header(_beginning(batch), base_position=position)
    found_crc = _crc(batch, header.magic)
    if found_crc != header.crc:
        raise CorruptError(
            "wrong batch CRC", position=position, expected=header.crc, found=found_crc
        )
    # The CRC covers neither offset nor leader epoch.
    end_offset = metadata.offsets.end_offset
    if header.base_offset < at_least_offset or header.next_offset > end_offset:
        expected, found = f"{at_least_offset}..{end_offset - 1}", header.base_offset
        raise CorruptError("batch has other offsets", expected=expected, found=found)
    if header.magic >= 2:
        _check_epoch(header, metadata)
    return header


def append_checked(
    run: BatchRun,
    buffer: memoryview,
    buffer_position: int,
    metadata: RemoteLogSegmentMetadata,
    until: RunEnd,
) -> None:
    """Check the batches of `buffer` that follow `run`, and add the valid ones.

    Handles nearly every batch: version 2, whole in one buffer, unpacked in place. Stops at any
    other batch, which `checked_header` then checks.
    """
    epochs, segment_end_offset = metadata.segment_leader_epochs, metadata.offsets.end_offset
    next_offset = run.next_offset
    epoch: int | None = NO_EPOCH
    epoch_end_offset = next_offset
    position = run.end_position - buffer_position
    until_position, until_offset = until.position - buffer_position, until.offset
    while position < until_position and next_offset <= until_offset:
        if len(buffer) - position < HEADER_BYTES or buffer[position + MAGIC_POSITION] != 2:
            return
        base_offset, length, batch_epoch, _, crc, _, delta, *_ = V2_HEADER.unpack_from(
            buffer, position
        )
        end_position = position + length + LOG_OVERHEAD_BYTES
        if not position + HEADER_BYTES <= end_position <= len(buffer):
            return
        if crc32c(buffer[position + CRC_COVERED_FROM : end_position]) != crc:
            return
        if delta < 0 or base_offset < next_offset or base_offset + delta >= segment_end_offset:
            return
        if base_offset >= epoch_end_offset:
            epoch = epochs.epoch_for_offset(base_offset)
            following = None if epoch is None else epochs.end_offset(epoch)
            epoch_end_offset = segment_end_offset if following is None else following
        if batch_epoch != epoch:
            return
        next_offset = base_offset + delta + 1
        run.append(end_position - position, base_offset, next_offset)
        position = end_position


def require_index_agrees(base_offset: int, entry: OffsetIndexEntry) -> None:
    """Check that an index entry led to a batch at or below its offset. Raises CorruptError."""
    if entry.position > 0 and base_offset > entry.offset:
        expected, found = f"<= {entry.offset}", base_offset
        raise CorruptError("index does not agree with the log", expected=expected, found=found)


def require_outside(base_offset: int, end_offset: int) -> None:
    """Check that no batch crosses the readable part's end, which is between leader epochs."""
    if base_offset < end_offset:
        expected, found = end_offset, base_offset
        raise CorruptError("batch crosses its lineage's end", expected=expected, found=found)


def _beginning(batch: Sequence[memoryview]) -> memoryview:
    """Return the header, or the available part of it, in one buffer."""
    if len(batch) == 1 or len(batch[0]) >= HEADER_BYTES:
        # The caller that found the batch's end has checked its length.
        return batch[0]
    beginning = bytearray()
    for piece in batch:
        beginning += piece[: HEADER_BYTES - len(beginning)]
    return memoryview(bytes(beginning))


def _crc(batch: Sequence[memoryview], magic: int) -> int:
    """Compute a batch's CRC: a CRC-32C for magic 2, a CRC-32 for magic 0 and 1."""
    uncovered_bytes = LEGACY_CRC_COVERED_FROM if magic < 2 else CRC_COVERED_FROM
    crc = 0
    for piece in batch:
        covered = piece[uncovered_bytes:]
        uncovered_bytes -= len(piece) - len(covered)
        crc = zlib.crc32(covered, crc) if magic < 2 else crc32c(covered, crc)
    return crc


def _check_epoch(header: BatchHeader, metadata: RemoteLogSegmentMetadata) -> None:
    expected = metadata.segment_leader_epochs.epoch_for_offset(header.base_offset)
    # None: below the log start at copy time, so the epoch is unknown and the batch is not served.
    if expected is not None and expected != header.partition_leader_epoch:
        found = header.partition_leader_epoch
        raise CorruptError("leader epoch is not the segment's", expected=expected, found=found)
