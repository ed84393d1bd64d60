"""Reads many Avro records at once into a struct column, if their schema is simple enough.

A leaf is a field that is not a record. Each leaf must be of a primitive type, a fixed or an enum,
or a union of null and one of these. Decimals are not supported.

Memory: 16 bytes per record and leaf, and the bytes of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_tools.schemas.schema_text import RowsReader

try:
    from spark_tools.schemas.avro import avro_kernel
except ImportError:  # The package numba is not installed.
    avro_kernel = None  # type: ignore[assignment]  # a module or None

Schema = Any
Bools = NDArray[np.bool_]
_Column = Callable[["_Leaves", Bools], pa.Array]

_IS_COMPILED = avro_kernel is not None
_MAX_LEAVES = 128
_SIZES = {"boolean": 1, "float": 4, "double": 8}


class AvroRows(RowsReader):
    """Reads records that were written with the reader's own schema. Thread-safe."""

    def __init__(self, leaves: NDArray[np.int64], column: _Column, kind: pa.DataType) -> None:
        """Take the parts that `rows_of` makes; only `rows_of` calls this."""
        self._leaves = leaves
        self._column = column
        self._type = kind

    def read(self, payloads: pa.Array, header_bytes: int, wanted: Bools) -> tuple[pa.Array, Bools]:
        count = len(payloads)
        _, edges_buffer, data_buffer = payloads.buffers()
        edges = np.frombuffer(edges_buffer, np.int32)[payloads.offset :][: count + 1]
        data = np.frombuffer(b"" if data_buffer is None else data_buffer, np.uint8)
        done = wanted.astype(np.uint8)
        numbers = np.zeros((len(self._leaves), count), dtype=np.int64)
        starts = np.zeros((len(self._leaves), count), dtype=np.int32)
        lengths = np.full((len(self._leaves), count), -1, dtype=np.int32)
        avro_kernel.read_leaves(
            data, edges, header_bytes, self._leaves, done, numbers, starts, lengths
        )
        is_read = done.astype(np.bool_)
        lengths[:, ~is_read] = -1
        structs = self._column(_Leaves(data, numbers, starts, lengths), is_read)
        return structs if structs.type == self._type else structs.cast(self._type), is_read


class _Leaves:
    """The values of leaves: arrays with a row per leaf, and the bytes that spans refer to."""

    def __init__(
        self,
        data: NDArray[np.uint8],
        numbers: NDArray[np.int64],
        starts: NDArray[np.int32],
        lengths: NDArray[np.int32],
    ) -> None:
        self.data = data
        self.numbers = numbers
        self.starts = starts
        self.lengths = lengths


def rows_of(
    schema: Schema, named: Mapping[str, Schema], stored: pa.DataType, kind: pa.DataType
) -> AvroRows | None:
    """Return the reader; None if numba is not installed or the schema is not supported.

    Supports records of 1 to 128 leaves. `stored` is the column's type with timestamps in Avro's
    unit; `kind` is the column's type with timestamps in Spark's unit.
    """
    if not _IS_COMPILED or not pa.types.is_struct(stored):
        return None
    leaves: list[tuple[int, int, int]] = []
    column = _record(schema, named, stored, leaves)
    if column is None or not 0 < len(leaves) <= _MAX_LEAVES:
        return None
    return AvroRows(np.array(leaves, dtype=np.int64), column, kind)


def _record(
    schema: Schema,
    named: Mapping[str, Schema],
    kind: pa.DataType,
    leaves: list[tuple[int, int, int]],
) -> _Column | None:
    full = named.get(schema) if isinstance(schema, str) else schema
    if not isinstance(full, dict) or full.get("type") != "record":
        return None
    columns: list[_Column] = []
    for field, of_field in zip(full["fields"], kind, strict=True):
        column = (
            _record(field["type"], named, of_field.type, leaves)
            if pa.types.is_struct(of_field.type)
            else _leaf(field["type"], named, of_field.type, leaves)
        )
        if column is None:
            return None
        columns.append(column)

    def struct(read: _Leaves, is_read: Bools) -> pa.Array:
        arrays = [each(read, is_read) for each in columns]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=pa.array(~is_read))

    return struct


def _leaf(
    schema: Schema,
    named: Mapping[str, Schema],
    kind: pa.DataType,
    leaves: list[tuple[int, int, int]],
) -> _Column | None:
    null_at = avro_kernel.NOT_NULL
    if isinstance(schema, list):
        if len(schema) != 2 or "null" not in schema:
            return None
        null_at = schema.index("null")
        schema = schema[1 - null_at]
    full = named.get(schema, schema) if isinstance(schema, str) else schema
    name = full if isinstance(full, str) else full["type"]
    if not isinstance(name, str) or (isinstance(full, dict) and "logicalType" in full):
        return None
    kinds = {
        "boolean": avro_kernel.BOOLEAN, "int": avro_kernel.INT, "long": avro_kernel.LONG,
        "float": avro_kernel.FLOAT, "double": avro_kernel.DOUBLE, "bytes": avro_kernel.BYTES,
        "string": avro_kernel.BYTES, "fixed": avro_kernel.FIXED, "enum": avro_kernel.ENUM,
    }  # fmt: skip
    if name not in kinds:
        return None
    symbols = full["symbols"] if name == "enum" else []
    size = full["size"] if name == "fixed" else len(symbols) or _SIZES.get(name, 0)
    number = len(leaves)
    leaves.append((kinds[name], size, null_at))
    return lambda read, _: _column(read, number, kind, symbols)


def _column(read: _Leaves, number: int, kind: pa.DataType, symbols: list[str]) -> pa.Array:
    numbers, lengths = read.numbers[number], read.lengths[number]
    is_null = lengths < 0
    if symbols:
        codes = pa.array(numbers.astype(np.int32), mask=is_null)
        return pa.array(symbols, pa.string()).take(codes)
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        count, size = len(lengths), int(np.maximum(lengths, 0).sum())
        edges, gathered = np.empty(count + 1, np.int32), np.empty(size, np.uint8)
        avro_kernel.gather(read.data, read.starts[number], lengths, edges, gathered)
        buffers = [_validity(is_null), pa.py_buffer(edges), pa.py_buffer(gathered)]
        return pa.Array.from_buffers(pa.binary(), count, buffers).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array(numbers.astype(np.bool_), mask=is_null)
    stored = numbers
    if kind.bit_width == 32:
        stored = numbers.astype(np.uint32).view(np.int32) if numbers.size else numbers
    buffers = [_validity(is_null), pa.py_buffer(np.ascontiguousarray(stored))]
    return pa.Array.from_buffers(kind, len(lengths), buffers)


def _validity(is_null: Bools) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(~is_null, bitorder="little")) if is_null.any() else None
