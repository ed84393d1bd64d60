"""Decodes many batches of magic 2 into arrays, without a Python object per record. Pure.

With numba (the extra `spark`), compiled code finds the records and copies their bytes for Arrow. If
numba cannot be loaded, the caller decodes the records one by one, with the same result.

Memory: three times the plain bytes of the batches, and about 100 bytes per record.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rsm.segment.batches.batch import BatchHeader
from rsm.segment.batches.records import Record
from rsm.segment.ranges import OffsetRange
from spark_tools.rows.batch_table import Bytes, Ints, PlainBatches
from spark_tools.rows.bindings import open_record_kernel
from spark_tools.rows.schema import arrow_schema

Int32s = NDArray[np.int32]

_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1
_MIN_RECORD_BYTES = 7  # A record has six numbers of at least one byte, and one byte of attributes.
_HEADERS_TYPE = arrow_schema(["headers"]).field("headers").type


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBounds:
    """Represents the wanted offsets and timestamps, [from_ms, until_ms); None means no bound."""

    offsets: OffsetRange
    from_ms: int | None = None
    until_ms: int | None = None

    def as_numbers(self) -> Ints:
        """Return the first and end offset, and the first and last timestamp."""
        first_ms = _MIN_INT64 if self.from_ms is None else self.from_ms
        last_ms = _MAX_INT64 if self.until_ms is None else self.until_ms - 1
        offsets = self.offsets
        return np.array([offsets.start_offset, offsets.end_offset, first_ms, last_ms], np.int64)

    def chosen(self, offsets: Ints, timestamps_ms: Ints) -> Ints:
        """Return the indexes of the records within the bounds, ascending."""
        first_offset, end_offset, first_ms, last_ms = self.as_numbers()
        wanted = (offsets >= first_offset) & (offsets < end_offset)
        wanted &= (timestamps_ms >= first_ms) & (timestamps_ms <= last_ms)
        return np.flatnonzero(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordArrays:
    """Represents records in order of offset, with one array of equal length per field.

    `keys` and `values` are binary. `headers` are lists of (key, value); null for a record that has
    none. From `decode_batches`, each of these three is null in all rows unless it was requested.
    """

    offsets: Ints
    timestamps_ms: Ints
    timestamp_types: NDArray[np.int32]
    leader_epochs: NDArray[np.int32]
    keys: pa.Array
    values: pa.Array
    headers: pa.Array


def decode_batches(
    batches: PlainBatches, bounds: RowBounds, fields: Collection[str]
) -> RecordArrays | None:
    """Decode the records within the bounds, in order; `fields` are names of columns.

    The caller must have checked the CRCs. Returns None if the caller must decode the records one by
    one, because there is no compiled code or a batch is invalid. rsm.segment.batches.records
    reports how the batch is invalid.
    """
    kernel = open_record_kernel()
    if kernel is None:
        return None
    data, table = batches.data, batches.table
    total = int(table.numbers("record_count").sum())
    if total * _MIN_RECORD_BYTES > len(data):
        return None
    times, owners = np.empty((2, total), dtype=np.int64), np.empty(total, dtype=np.int64)
    spans = np.empty((kernel.SPAN_FIELDS, total), dtype=np.int32)
    count = kernel.find_records(data, _facts(batches), bounds.as_numbers(), times, owners, spans)
    if count < 0:
        return None
    owners, spans = owners[:count], spans[:, :count]
    nothing = pa.nulls(count, pa.binary())
    return RecordArrays(
        offsets=times[0, :count],
        timestamps_ms=times[1, :count],
        timestamp_types=table.timestamp_types.astype(np.int32)[owners],
        leader_epochs=table.headers["leader_epoch"].astype(np.int32)[owners],
        keys=_gathered(kernel, data, spans[0], spans[1]) if "key" in fields else nothing,
        values=_gathered(kernel, data, spans[2], spans[3]) if "value" in fields else nothing,
        headers=_headers(kernel, data, spans[4], spans[5])
        if "headers" in fields
        else pa.nulls(count, _HEADERS_TYPE),
    )


def arrays_of(header: BatchHeader, records: Sequence[Record], bounds: RowBounds) -> RecordArrays:
    """Return the records within the bounds as arrays; `records` are those of one batch."""
    offsets = np.array([each.offset for each in records], dtype=np.int64)
    timestamps_ms = np.array([each.timestamp_ms for each in records], dtype=np.int64)
    rows = bounds.chosen(offsets, timestamps_ms)
    kept = [records[row] for row in rows]
    named = [[{"key": k, "value": v} for k, v in each.headers] or None for each in kept]
    return RecordArrays(
        offsets=offsets[rows],
        timestamps_ms=timestamps_ms[rows],
        timestamp_types=np.full(len(kept), int(header.timestamp_type), dtype=np.int32),
        leader_epochs=np.full(len(kept), header.partition_leader_epoch, dtype=np.int32),
        keys=pa.array([each.key for each in kept], pa.binary()),
        values=pa.array([each.value for each in kept], pa.binary()),
        headers=pa.array(named, _HEADERS_TYPE),
    )


def _facts(batches: PlainBatches) -> Ints:
    """Return the header fields, in the order of `record_kernel.BATCH_FIELDS`."""
    table = batches.table
    columns = (
        batches.starts,
        batches.ends,
        table.numbers("record_count"),
        table.numbers("base_offset"),
        table.numbers("last_offset_delta"),
        table.numbers("base_timestamp_ms"),
        table.numbers("max_timestamp_ms"),
        table.timestamp_types,
    )
    return np.stack(columns, axis=1)


def _gathered(kernel: ModuleType, data: Bytes, starts: Int32s, lengths: Int32s) -> pa.Array:
    """Return the bytes of each span as binary; null where the length is -1."""
    count = len(starts)
    size = int(np.maximum(lengths, 0).sum())
    edges, gathered = np.empty(count + 1, dtype=np.int32), np.empty(size, dtype=np.uint8)
    kernel.gather(data, starts, lengths, edges, gathered)
    is_null = lengths < 0
    null_count = int(is_null.sum())
    valid = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if null_count else None
    buffers = [valid, pa.py_buffer(edges), pa.py_buffer(gathered)]
    return pa.Array.from_buffers(pa.binary(), count, buffers, null_count)


def _headers(kernel: ModuleType, data: Bytes, starts: Int32s, counts: Int32s) -> pa.Array:
    """Return a list of (key, value) per record; null if it has none, as in Spark's Kafka source."""
    total = int(counts.sum())
    if total == 0:
        return pa.nulls(len(counts), _HEADERS_TYPE)
    spans = np.empty((4, total), dtype=np.int32)
    kernel.find_headers(data, starts, counts, spans)
    names = _gathered(kernel, data, spans[0], spans[1])
    values = _gathered(kernel, data, spans[2], spans[3])
    items = pa.StructArray.from_arrays(
        [_as_text(names), values], fields=list(_HEADERS_TYPE.value_type)
    )
    edges = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=edges[1:])
    is_none = pa.array(counts == 0)
    return pa.ListArray.from_arrays(pa.array(edges), items, type=_HEADERS_TYPE, mask=is_none)


def _as_text(names: pa.Array) -> pa.Array:
    """Convert names to text; invalid UTF-8, which brokers accept, becomes U+FFFD as in Java."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", errors="replace") for name in names.to_pylist()])
