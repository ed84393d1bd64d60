"""Represents record batches of magic 2 as a table of headers, and decompresses them. Pure.

One structured array contains all headers: with a Python object per batch, these objects would take
most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rsm.segment.batches.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES
from rsm.segment.batches.compression import CompressionType, decompress

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
"""The header as in rsm.segment.batches.batch."""

_COMPRESSION, _TIMESTAMP_TYPE, _TRANSACTIONAL, _CONTROL = 0x07, 0x08, 0x10, 0x20
_PART_BYTES = 8 << 20
_PART_RECORDS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTable:
    """Represents the batches at `positions` of `data`; each batch must be whole and checked."""

    data: memoryview
    positions: Ints
    headers: NDArray[np.void]

    @classmethod
    def of(cls, data: memoryview, positions: Sequence[int]) -> BatchTable:
        """Read the headers at these positions."""
        where = np.array(positions, dtype=np.int64)
        raw = np.frombuffer(data, dtype=np.uint8)[where[:, None] + np.arange(HEADER_BYTES)]
        return cls(data=data, positions=where, headers=raw.view(HEADER)[:, 0])

    def __len__(self) -> int:
        return len(self.positions)

    def rows(self, chosen: Bools | slice) -> BatchTable:
        """Return only the chosen batches."""
        return replace(self, positions=self.positions[chosen], headers=self.headers[chosen])

    def numbers(self, name: str) -> Ints:
        """Return a field of all headers."""
        return self.headers[name].astype(np.int64)

    @property
    def timestamp_types(self) -> Ints:
        """Return the value of `TimestampType` of each batch."""
        return (self.numbers("attributes") & _TIMESTAMP_TYPE) // _TIMESTAMP_TYPE

    @property
    def is_transactional(self) -> Bools:
        transactional: Bools = self.numbers("attributes") & _TRANSACTIONAL != 0
        return transactional

    @property
    def is_control(self) -> Bools:
        control: Bools = self.numbers("attributes") & _CONTROL != 0
        return control

    def plain(self) -> Iterator[PlainBatches]:
        """Yield the batches, decompressed, in parts of about 65,536 records.

        If any batch is compressed, a part also ends at about 8 MiB. Raises CorruptError and
        UnsupportedError.
        """
        if (self.headers["attributes"] & _COMPRESSION).any():
            yield from self._decompressed()
            return
        records = np.cumsum(self.numbers("record_count"))
        edges = np.flatnonzero(np.diff(records // _PART_RECORDS)) + 1
        data = np.frombuffer(self.data, dtype=np.uint8)
        starts, ends = self._payloads()
        for first, end in zip((0, *edges), (*edges, len(self)), strict=True):
            part = slice(first, end)
            yield PlainBatches(
                table=self.rows(part), data=data, starts=starts[part], ends=ends[part]
            )

    def _decompressed(self) -> Iterator[PlainBatches]:
        codecs = (self.headers["attributes"] & _COMPRESSION).tolist()
        counts = self.headers["record_count"].tolist()
        starts, ends = self._payloads()
        pieces: list[bytes | memoryview] = []
        first = part_bytes = part_records = 0
        for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            piece: bytes | memoryview = self.data[start:end]
            # Compaction may leave an empty batch, which cannot be decompressed.
            if piece and codecs[row] != CompressionType.NONE:
                piece = decompress(codecs[row], piece)
            pieces.append(piece)
            part_bytes += len(piece)
            part_records += counts[row]
            if part_bytes >= _PART_BYTES or part_records >= _PART_RECORDS:
                yield PlainBatches.of(self.rows(slice(first, row + 1)), pieces)
                pieces, first, part_bytes, part_records = [], row + 1, 0, 0
        if pieces:
            yield PlainBatches.of(self.rows(slice(first, None)), pieces)

    def _payloads(self) -> tuple[Ints, Ints]:
        """Return where the records of each batch start and end."""
        ends = self.positions + self.numbers("length") + LOG_OVERHEAD_BYTES
        return self.positions + HEADER_BYTES, ends


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainBatches:
    """Represents decompressed batches: [start, end) of `data` contains the records of each.

    `data` must be smaller than 2 GiB.
    """

    table: BatchTable
    data: Bytes
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, table: BatchTable, pieces: Sequence[bytes | memoryview]) -> PlainBatches:
        """Combine the batches; `pieces` has the decompressed records of each."""
        edges = np.zeros(len(pieces) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in pieces], out=edges[1:])
        data = np.frombuffer(b"".join(pieces), dtype=np.uint8)
        return cls(table=table, data=data, starts=edges[:-1], ends=edges[1:])
