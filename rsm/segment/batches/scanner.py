"""Checks a segment while its bytes stream through, and collects its bounds.

A segment must pass these checks before it counts as stored: each batch's CRC, ascending offsets,
and the leader epochs of the log's lineage. Must not know the source or the target of the bytes.
Memory: at most one incomplete batch, `max_batch_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crc32c import crc32c

from rsm.segment.batches.batch import (
    CRC_COVERED_FROM,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAX_BATCH_BYTES,
    NO_EPOCH,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    V2_HEADER,
    BatchHeader,
    batch_length_bytes,
    parse_header,
    verify_crc,
)
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError
from rsm.segment.ranges import OffsetRange

_NO_END_OFFSET = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentScan:
    """The result so far. `offsets` are [segment's base offset, offset after the last batch).

    `max_timestamp_ms` is the greatest timestamp, `offset_of_max_timestamp` the last offset of the
    first batch with it; both are -1 without timestamps. `valid_bytes` counts whole, checked
    batches. `fed_bytes` also counts an incomplete batch at the end.
    """

    offsets: OffsetRange
    max_timestamp_ms: int
    offset_of_max_timestamp: int
    batch_count: int
    valid_bytes: int
    fed_bytes: int


class SegmentScanner:
    """Checks a segment's bytes as they arrive. Not thread-safe; unusable after an error.

    `lineage` must cover the segment. A trim may have cut a broker's lineage: offsets below its
    first entry are accepted with the entry's epoch or any older one. `observe` gets each batch's
    header after the checks, in order; that costs the time to build the header.
    """

    def __init__(
        self,
        *,
        base_offset: int,
        lineage: Lineage,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        observe: Callable[[BatchHeader], None] | None = None,
    ) -> None:
        self._base_offset = base_offset
        self._lineage = lineage
        self._max_batch_bytes = max_batch_bytes
        self._observe = observe
        self._epoch = NO_EPOCH
        self._epoch_end_offset = base_offset
        self._next_offset = base_offset
        self._max_timestamp_ms = NO_TIMESTAMP
        self._offset_of_max_timestamp = -1
        self._batch_count = 0
        self._valid_bytes = 0
        self._fed_bytes = 0
        self._partial_batch = bytearray()

    def feed(self, chunk: bytes | memoryview) -> None:
        """Check the next bytes; keeps no reference to `chunk`.

        Raises CorruptError with the invalid batch's position in the segment.
        """
        view = memoryview(chunk)
        self._fed_bytes += len(view)
        position = self._complete_partial_batch(view) if self._partial_batch else 0
        while taken := self._accept_batch(view, position):
            position += taken
        self._partial_batch += view[position:]

    def scan(self) -> SegmentScan:
        """Return the result so far, without an incomplete batch at the end."""
        return SegmentScan(
            offsets=OffsetRange(start_offset=self._base_offset, end_offset=self._next_offset),
            max_timestamp_ms=self._max_timestamp_ms,
            offset_of_max_timestamp=self._offset_of_max_timestamp,
            batch_count=self._batch_count,
            valid_bytes=self._valid_bytes,
            fed_bytes=self._fed_bytes,
        )

    def finish(self) -> SegmentScan:
        """Return the result for the whole segment; CorruptError if it ends within a batch."""
        if self._partial_batch:
            raise self._corrupt(
                "segment ends within a batch", "a whole one", len(self._partial_batch)
            )
        return self.scan()

    def _complete_partial_batch(self, view: memoryview) -> int:
        """Complete the buffered batch from `view` and check it; return how many bytes it took."""
        taken = 0
        missing = PREFIX_BYTES - len(self._partial_batch)
        if missing > 0:
            self._partial_batch += view[:missing]
            taken = min(missing, len(view))
        size = self._batch_bytes_at(memoryview(self._partial_batch), 0)
        if size is None:
            return taken
        missing = size - len(self._partial_batch)
        self._partial_batch += view[taken : taken + missing]
        taken = min(taken + missing, len(view))
        if len(self._partial_batch) == size:
            batch, self._partial_batch = memoryview(self._partial_batch), bytearray()
            self._accept_batch(batch, 0)
        return taken

    def _accept_batch(self, view: memoryview, position: int) -> int:
        """Check and count the batch at `position`; return its size, or 0 if it is incomplete.

        Handles nearly every batch: unpacked in place, without an object for its header.
        """
        available = len(view) - position
        if available < HEADER_BYTES or view[position + 16] != 2:
            return self._accept_other(view, position)
        base_offset, length, epoch, _, crc, _, delta, _, timestamp, *_ = V2_HEADER.unpack_from(
            view, position
        )
        size: int = length + LOG_OVERHEAD_BYTES
        if not HEADER_BYTES <= size <= available or size > self._max_batch_bytes:
            return self._accept_other(view, position)
        found_crc = crc32c(view[position + CRC_COVERED_FROM : position + size])
        if found_crc != crc:
            raise self._corrupt("wrong batch CRC", crc, found_crc)
        if base_offset < self._next_offset or delta < 0:
            found = f"{base_offset} + {delta}"
            raise self._corrupt("offsets do not ascend", f">= {self._next_offset}", found)
        last_offset = base_offset + delta
        if epoch != self._epoch or last_offset >= self._epoch_end_offset:
            self._enter_epoch(epoch, base_offset, last_offset)
        if self._observe is not None:
            self._observe(parse_header(view, position))
        self._count(size, last_offset, timestamp)
        return size

    def _accept_other(self, view: memoryview, position: int) -> int:
        """Handle all but whole batches v2: magic 0 or 1, an incomplete batch, or garbage."""
        size = self._batch_bytes_at(view, position)
        if size is None or position + size > len(view):
            return 0
        batch = view[position : position + size]
        header = verify_crc(batch, position=self._valid_bytes)
        if header.base_offset < self._next_offset:
            expected = f">= {self._next_offset}"
            raise self._corrupt("offsets do not ascend", expected, header.base_offset)
        if self._observe is not None:
            self._observe(header)
        self._count(size, header.last_offset, header.max_timestamp_ms)
        return size

    def _batch_bytes_at(self, view: memoryview, position: int) -> int | None:
        base_position = self._valid_bytes - position
        maximum = self._max_batch_bytes
        return batch_length_bytes(view, position, base_position=base_position, max_bytes=maximum)

    def _enter_epoch(self, epoch: int, base_offset: int, last_offset: int) -> None:
        """Check the first batch of an epoch against the lineage, and note the epoch's end."""
        expected = self._lineage.epoch_for_offset(base_offset)
        end_offset = self._lineage.end_offset(epoch)
        if expected is None and self._lineage:
            # Below a cut lineage older epochs are unknown, but they end at its start.
            first = self._lineage.entries[0]
            expected = max(epoch, self._epoch) if epoch <= first.epoch else first.epoch
        if epoch != expected or epoch < 0:
            raise self._corrupt("leader epoch is not the lineage's", expected, epoch)
        if end_offset is not None and last_offset >= end_offset:
            raise self._corrupt("batch outlives its leader epoch", f"< {end_offset}", last_offset)
        self._epoch = epoch
        self._epoch_end_offset = _NO_END_OFFSET if end_offset is None else end_offset

    def _count(self, size: int, last_offset: int, timestamp_ms: int) -> None:
        if timestamp_ms > self._max_timestamp_ms:
            self._max_timestamp_ms = timestamp_ms
            self._offset_of_max_timestamp = last_offset
        self._next_offset = last_offset + 1
        self._batch_count += 1
        self._valid_bytes += size

    def _corrupt(self, message: str, expected: object, found: object) -> CorruptError:
        return CorruptError(message, position=self._valid_bytes, expected=expected, found=found)
