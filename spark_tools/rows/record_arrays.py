"""The records of many batches v2 as arrays, without a Python object per record.

What rsm.segment.records decodes one by one is decoded here column by column: the records' bounds
are found one after the other, everything within them for all records at once. Bytes that are not
what they say are handed to the one by one decoder, which tells where and why. Pure.

Memory: three times the plain bytes of the batches given at once, and some 200 bytes per record.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rsm.segment.batch import HEADER_BYTES, BatchHeader, TimestampType
from rsm.segment.compression import decompress
from rsm.segment.errors import CorruptError
from rsm.segment.ranges import OffsetRange
from rsm.segment.varint import read_varint
from spark_tools.rows.binary_spans import Spans, gather
from spark_tools.rows.header_arrays import HeaderSpans, headers_array
from spark_tools.rows.varints import MAX_VARINT_BYTES, Bytes, Ints, decode_varints

_PADDING = bytes(MAX_VARINT_BYTES)


class PlainBatch(NamedTuple):
    """A batch of magic 2 with records of users: its header, its bytes, and its records' plain ones.

    `plain` of all that are decoded at once must be less than 2 GiB.
    """

    header: BatchHeader
    batch: memoryview
    plain: bytes

    @classmethod
    def of(cls, header: BatchHeader, batch: memoryview) -> PlainBatch:
        """Decompress. Raises CorruptError, UnsupportedError."""
        payload = batch[HEADER_BYTES:]
        # A compacted batch may be empty, and then holds nothing to decompress either.
        plain = decompress(header.compression_id, payload) if payload else b""
        return cls(header=header, batch=batch, plain=plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBounds:
    """Which records are wanted: offsets, and timestamps [from_ms, until_ms); None: no bound."""

    offsets: OffsetRange
    from_ms: int | None = None
    until_ms: int | None = None

    def chosen(self, offsets: Ints, timestamps_ms: Ints) -> Ints:
        """The indexes of the wanted ones, ascending."""
        wanted = (offsets >= self.offsets.start_offset) & (offsets < self.offsets.end_offset)
        if self.from_ms is not None:
            wanted &= timestamps_ms >= self.from_ms
        if self.until_ms is not None:
            wanted &= timestamps_ms < self.until_ms
        return np.flatnonzero(wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordArrays:
    """Records in order of offset, one array per field, all of one length.

    `keys` and `values` are binary, `headers` a list of (key, value) or null where there is none;
    each is null in all rows if it was not asked for.
    """

    offsets: Ints
    timestamps_ms: Ints
    timestamp_types: NDArray[np.int32]
    leader_epochs: NDArray[np.int32]
    keys: pa.Array
    values: pa.Array
    headers: pa.Array


def decode_batches(
    batches: Sequence[PlainBatch], bounds: RowBounds, fields: Collection[str]
) -> RecordArrays:
    """The records of these batches that are wanted, in order; of `fields` as columns are named.

    CRCs were checked. CorruptError if a batch's bytes are not what its header says; which of them
    is for rsm.segment.records to tell.
    """
    data, starts, ends, owners = _laid_out(batches)
    deltas_ms, cursor = decode_varints(data, starts + 1)
    offset_deltas, cursor = decode_varints(data, np.minimum(cursor, ends))
    key_spans, cursor = _spans(data, cursor, ends)
    value_spans, cursor = _spans(data, cursor, ends)
    header_counts, cursor = decode_varints(data, cursor)
    _require(bool((header_counts >= 0).all()) and bool((cursor <= ends).all()), batches)
    _require(bool((cursor == ends)[header_counts == 0].all()), batches)

    facts = _BatchFacts.of([each.header for each in batches])
    in_batch = (offset_deltas >= 0) & (offset_deltas <= facts.last_offset_deltas[owners])
    _require(bool(in_batch.all()), batches)
    offsets = facts.base_offsets[owners] + offset_deltas
    timestamps_ms = np.where(
        facts.timestamp_types[owners] == TimestampType.CREATE_TIME,
        facts.base_timestamps_ms[owners] + deltas_ms,
        facts.max_timestamps_ms[owners],
    )
    rows = bounds.chosen(offsets, timestamps_ms)
    buffer = pa.py_buffer(data)
    if "headers" not in fields:
        header_counts = np.zeros_like(header_counts)
    headers = HeaderSpans(starts=cursor[rows], ends=ends[rows], counts=header_counts[rows])
    nothing = pa.nulls(len(rows), pa.binary())
    return RecordArrays(
        offsets=offsets[rows],
        timestamps_ms=timestamps_ms[rows],
        timestamp_types=facts.timestamp_types[owners[rows]],
        leader_epochs=facts.leader_epochs[owners[rows]],
        keys=gather(buffer, key_spans.chosen(rows)) if "key" in fields else nothing,
        values=gather(buffer, value_spans.chosen(rows)) if "value" in fields else nothing,
        headers=headers_array(data, headers),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchFacts:
    """What the headers say, an element per batch."""

    base_offsets: Ints
    last_offset_deltas: Ints
    base_timestamps_ms: Ints
    max_timestamps_ms: Ints
    timestamp_types: NDArray[np.int32]
    leader_epochs: NDArray[np.int32]

    @classmethod
    def of(cls, headers: Sequence[BatchHeader]) -> _BatchFacts:
        return cls(
            base_offsets=np.array([h.base_offset for h in headers], dtype=np.int64),
            last_offset_deltas=np.array([h.last_offset_delta for h in headers], dtype=np.int64),
            base_timestamps_ms=np.array([h.base_timestamp_ms for h in headers], dtype=np.int64),
            max_timestamps_ms=np.array([h.max_timestamp_ms for h in headers], dtype=np.int64),
            timestamp_types=np.array([int(h.timestamp_type) for h in headers], dtype=np.int32),
            leader_epochs=np.array([h.partition_leader_epoch for h in headers], dtype=np.int32),
        )


def _laid_out(batches: Sequence[PlainBatch]) -> tuple[Bytes, Ints, Ints, Ints]:
    """All plain bytes in a row, where each record begins and ends, and which batch it is of."""
    starts: list[int] = []
    ends: list[int] = []
    base = 0
    for each in batches:
        _find_records(each, base, starts, ends)
        base += len(each.plain)
    data = np.frombuffer(b"".join((*(b.plain for b in batches), _PADDING)), dtype=np.uint8)
    counts = np.array([each.header.record_count for each in batches], dtype=np.int64)
    owners = np.repeat(np.arange(len(batches), dtype=np.int64), counts)
    return data, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64), owners


def _find_records(batch: PlainBatch, base: int, starts: list[int], ends: list[int]) -> None:
    """Where each record of a batch begins, behind its length, and ends."""
    header, plain = batch.header, batch.plain
    position = 0
    try:
        for _ in range(header.record_count):
            length = plain[position]
            if length < 0x80:
                position += 1
                length = (length >> 1) ^ -(length & 1)
            else:
                length, position = read_varint(plain, position)
            if length <= 0:
                raise CorruptError("not a record's length", base_offset=header.base_offset)
            starts.append(base + position)
            position += length
            ends.append(base + position)
    except IndexError:
        position = -1
    if position != len(plain):
        raise CorruptError("records don't fill their batch", base_offset=header.base_offset)


def _spans(data: Bytes, positions: Ints, ends: Ints) -> tuple[Spans, Ints]:
    """The bytes behind a length at each position, -1 for null; and what is behind them."""
    # A position behind its record is an error that the last check finds; until then it must be one.
    lengths, starts = decode_varints(data, np.minimum(positions, ends))
    is_null = lengths == -1
    lengths[is_null] = 0
    if bool((lengths < 0).any()) or bool((lengths > ends - starts).any()):
        raise CorruptError("a field is not within its record")
    span_ends = starts + lengths
    return Spans(starts=starts, ends=span_ends, is_null=is_null), span_ends


def _require(holds: bool, batches: Sequence[PlainBatch]) -> None:  # noqa: FBT001 - a fact
    if not holds:
        raise CorruptError("not records", base_offset=batches[0].header.base_offset)
