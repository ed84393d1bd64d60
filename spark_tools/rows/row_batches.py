"""Converts checked batches of one partition to Arrow record batches of the wanted columns.

Omits control batches and, for read_committed, the batches of aborted transactions. Decodes many
batches of magic 2 at once, and batches of an older magic one by one.

Memory: that of rows.record_arrays for one part of rows.batch_table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rsm.segment.batches.aborted import AbortedTransactions
from rsm.segment.batches.batch import MAGIC_POSITION, batch_length_bytes, parse_header
from rsm.segment.batches.records import decode_records
from rsm.segment.batches.segment_cursor import StoredBatches
from spark_tools.rows.batch_table import BatchTable, Bools, Ints
from spark_tools.rows.record_arrays import RecordArrays, RowBounds, arrays_of, decode_batches
from spark_tools.rows.schema import UNREADABLE, arrow_schema

_FURTHEST_MS = ((1 << 63) - 1) // 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """Makes rows of one partition's batches. Omits the aborted transactions in `aborted`."""

    topic: str
    partition: int
    columns: tuple[str, ...]
    bounds: RowBounds
    aborted: AbortedTransactions

    def of_run(self, run: StoredBatches) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a run of whole, checked batches, in order. Raises CorruptError."""
        data, position = run.data, 0
        positions: list[int] = []
        while (size := batch_length_bytes(data, position)) is not None:
            if data[position + MAGIC_POSITION] >= 2:
                positions.append(position)
            else:
                yield from self._of_batches(data, positions)
                positions = []
                yield from self._one_by_one(data, position)
            position += size
        yield from self._of_batches(data, positions)

    def unreadable(self, offset: int, reason: str) -> pa.RecordBatch:
        """Return one row with the first unreadable offset and the reason."""
        cells: dict[str, object] = {
            "topic": self.topic,
            "partition": self.partition,
            "offset": offset,
            UNREADABLE: reason,
        }
        row = {name: [cells.get(name)] for name in self.columns}
        return pa.RecordBatch.from_pydict(row, schema=arrow_schema(self.columns))

    def _of_batches(self, data: memoryview, positions: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of batches of magic 2."""
        table = BatchTable.of(data, positions)
        for batches in table.rows(self._are_wanted(table)).plain():
            arrays = decode_batches(batches, self.bounds, self.columns)
            if arrays is None:
                for position in batches.table.positions.tolist():
                    yield from self._one_by_one(data, position)
            elif len(arrays.offsets):
                yield self.of_arrays(arrays)

    def _are_wanted(self, table: BatchTable) -> Bools:
        """Return which batches may contain wanted records, by their headers.

        Raises CorruptError for an invalid header.
        """
        counts, base_offsets = table.headers["record_count"], table.numbers("base_offset")
        for row in np.flatnonzero(counts < 0):
            parse_header(table.data, int(table.positions[row]))  # This call raises the error.
        next_offsets = base_offsets + table.numbers("last_offset_delta") + 1
        offsets, from_ms = self.bounds.offsets, self.bounds.from_ms
        wanted: Bools = ~table.is_control & (counts > 0)
        wanted &= (next_offsets > offsets.start_offset) & (base_offsets < offsets.end_offset)
        if from_ms is not None:
            wanted &= table.headers["max_timestamp_ms"] >= from_ms
        if self.aborted:
            for row in np.flatnonzero(wanted & table.is_transactional):
                header = parse_header(table.data, int(table.positions[row]))
                wanted[row] = not self.aborted.are_aborted(header)
        return wanted

    def _one_by_one(self, data: memoryview, position: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the batch at `position`, of any magic."""
        header = parse_header(data, position)
        if header.next_offset <= self.bounds.offsets.start_offset:
            return
        records = decode_records(header, data[position : position + header.length_bytes])
        arrays = arrays_of(header, records, self.bounds)
        if len(arrays.offsets):
            yield self.of_arrays(arrays)

    def of_arrays(self, arrays: RecordArrays) -> pa.RecordBatch:
        """Return selected records as rows of the wanted columns."""
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
    """Convert to microseconds. Clips timestamps that do not fit: producers can set any value."""
    return np.clip(timestamps_ms, -_FURTHEST_MS, _FURTHEST_MS) * 1000
