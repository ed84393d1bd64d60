"""Checked batches of one partition as Arrow record batches of the wanted columns.

Leaves out control batches and, for readers of committed records, those of aborted transactions.
Batches of magic 2 are decoded many at once; older messages, which still lie in old logs, one by
one.

Memory: what rows.record_arrays needs for GATHERED_BYTES and one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rsm.segment.aborted import AbortedTransactions
from rsm.segment.batch import BatchHeader, scan_batches
from rsm.segment.records import decode_records
from rsm.segment.segment_cursor import StoredBatches
from spark_tools.rows.record_arrays import (
    Ints,
    PlainBatch,
    RecordArrays,
    RowBounds,
    arrays_of,
    decode_batches,
)
from spark_tools.rows.schema import UNREADABLE, arrow_schema

GATHERED_BYTES = 8 << 20
_GATHERED_RECORDS = 65_536
_FURTHEST_MS = ((1 << 63) - 1) // 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """Makes rows of one partition's batches. `aborted` empty: of aborted transactions too."""

    topic: str
    partition: int
    columns: tuple[str, ...]
    bounds: RowBounds
    aborted: AbortedTransactions

    def of_run(self, run: StoredBatches) -> Iterator[pa.RecordBatch]:
        """The rows of a run of whole, checked batches, in order. CorruptError."""
        gathered: list[PlainBatch] = []
        gathered_bytes = gathered_count = 0
        for position, header in scan_batches(run.data):
            if not self._is_wanted(header):
                continue
            batch = run.data[position : position + header.length_bytes]
            if header.magic < 2:
                yield from self._rows(gathered)
                gathered, gathered_bytes, gathered_count = [], 0, 0
                yield from self._one_by_one(header, batch)
                continue
            gathered.append(PlainBatch.of(header, batch))
            gathered_bytes += len(gathered[-1].plain)
            gathered_count += header.record_count
            if gathered_bytes >= GATHERED_BYTES or gathered_count >= _GATHERED_RECORDS:
                yield from self._rows(gathered)
                gathered, gathered_bytes, gathered_count = [], 0, 0
        yield from self._rows(gathered)

    def unreadable(self, offset: int, reason: str) -> pa.RecordBatch:
        """One row that says what could not be read, and from which offset on."""
        cells: dict[str, object] = {
            "topic": self.topic,
            "partition": self.partition,
            "offset": offset,
            UNREADABLE: reason,
        }
        row = {name: [cells.get(name)] for name in self.columns}
        return pa.RecordBatch.from_pydict(row, schema=arrow_schema(self.columns))

    def _is_wanted(self, header: BatchHeader) -> bool:
        """Whether any of the batch may be: by its header alone."""
        offsets = self.bounds.offsets
        if (
            header.is_control
            or not header.record_count
            or header.next_offset <= offsets.start_offset
        ):
            return False
        # An older compressed message has its last offset as its base.
        if header.magic >= 2 and header.base_offset >= offsets.end_offset:
            return False
        from_ms = self.bounds.from_ms
        if from_ms is not None and header.magic >= 2 and header.max_timestamp_ms < from_ms:
            return False
        return not self.aborted.holds(header)

    def _rows(self, batches: Sequence[PlainBatch]) -> Iterator[pa.RecordBatch]:
        if not batches:
            return
        arrays = decode_batches(batches, self.bounds, self.columns)
        if arrays is None:
            for each in batches:
                yield from self._one_by_one(each.header, each.batch)
        elif len(arrays.offsets):
            yield self.of_arrays(arrays)

    def _one_by_one(self, header: BatchHeader, batch: memoryview) -> Iterator[pa.RecordBatch]:
        arrays = arrays_of(header, decode_records(header, batch), self.bounds)
        if len(arrays.offsets):
            yield self.of_arrays(arrays)

    def of_arrays(self, arrays: RecordArrays) -> pa.RecordBatch:
        """Records that were chosen already, as rows of the wanted columns."""
        count = len(arrays.offsets)
        schema = arrow_schema(self.columns)
        makers: Mapping[str, Callable[[], pa.Array]] = {
            "key": lambda: arrays.keys,
            "value": lambda: arrays.values,
            "topic": lambda: pa.repeat(self.topic, count),
            "partition": lambda: pa.repeat(pa.scalar(self.partition, pa.int32()), count),
            "offset": lambda: pa.array(arrays.offsets),
            "timestamp": lambda: pa.array(_microseconds(arrays.timestamps_ms)),
            "timestampType": lambda: pa.array(arrays.timestamp_types),
            "headers": lambda: arrays.headers,
            "leader_epoch": lambda: pa.array(arrays.leader_epochs),
            UNREADABLE: lambda: pa.nulls(count),
        }
        columns = [makers[field.name]().cast(field.type) for field in schema]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _microseconds(timestamps_ms: Ints) -> Ints:
    """Of a time that is too far for microseconds, the furthest one: producers may set any."""
    return np.clip(timestamps_ms, -_FURTHEST_MS, _FURTHEST_MS) * 1000
