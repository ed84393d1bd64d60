"""Checks a segment as its bytes arrive, and finds the segment's bounds.

A segment must pass these checks before it counts as stored: each batch's CRC, ascending offsets,
and the leader epochs of the log's lineage. This module does not know the source or the target of
the bytes. Memory: at most one incomplete batch, `MAX_BATCH_BYTES`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rsm.segment.batches.batch_stream import BatchStream
from rsm.segment.batches.expectations import LineageExpectation
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentScan:
    """Represents the result so far. `offsets` end after the last whole batch.

    `valid_bytes` counts whole, checked batches. `fed_bytes` also counts an incomplete batch at the
    end.
    """

    offsets: OffsetRange
    batch_count: int
    valid_bytes: int
    fed_bytes: int


class SegmentScanner:
    """Checks one segment as its bytes arrive. Not thread-safe; unusable after an error.

    `lineage` must cover the segment; see `LineageExpectation`.
    """

    def __init__(self, *, base_offset: int, lineage: Lineage) -> None:
        self._base_offset = base_offset
        self._batches = BatchStream(LineageExpectation(lineage), next_offset=base_offset)
        self._batch_count = 0

    def feed(self, chunk: bytes | memoryview) -> None:
        """Check the next bytes. Keeps no reference to `chunk`.

        Raises CorruptError with the invalid batch's position in the segment.
        """
        for run, _ in self._batches.feed(chunk):
            self._batch_count += len(run)

    def scan(self) -> SegmentScan:
        """Return the result so far; only `fed_bytes` includes an incomplete batch at the end."""
        batches = self._batches
        return SegmentScan(
            offsets=OffsetRange(start_offset=self._base_offset, end_offset=batches.next_offset),
            batch_count=self._batch_count,
            valid_bytes=batches.position,
            fed_bytes=batches.position + batches.incomplete_bytes,
        )

    def finish(self) -> SegmentScan:
        """Return the result for the whole segment.

        Raises CorruptError if the segment ends within a batch.
        """
        if self._batches.incomplete_bytes:
            raise CorruptError(
                "the segment ends within a batch",
                position=self._batches.position,
                expected="a whole batch",
                found=self._batches.incomplete_bytes,
            )
        return self.scan()
