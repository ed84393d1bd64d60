"""Reads leaves of Avro records into columns of numbers and byte spans, in compiled code. Pure.

A leaf is a field that is not a record. Records that contradict their schema are not read; the
caller passes them to fastavro.

Importing this module raises ImportError if numba is not installed.
"""

from __future__ import annotations

import numpy as np

from spark_tools.rows.record_kernel import (
    NOT_ONE,
    Bytes,
    Int32s,
    Int64s,
    compiled,
    gather,
    read_number,
)

BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES, FIXED, ENUM = range(8)
"""The kinds of leaves."""

NOT_NULL = -1
"""Used as the position of null for a leaf whose type is not a union with null."""

__all__ = ["gather"]  # `gather` copies the spans that `read_leaves` writes.

_INT_BITS = 32
_LONG_BITS = 64


@compiled
def _read_bits(data: Bytes, position: int, count: int) -> int:
    """Read `count` bytes as a little-endian number."""
    bits = np.uint64(0)
    for number in range(count):
        bits |= np.uint64(data[position + number]) << np.uint64(8 * number)
    return np.int64(bits)  # type: ignore[return-value]  # an int, to numba


@compiled
def _read_leaf(data: Bytes, position: int, end: int, kind: int, size: int, leaf: Int64s) -> int:
    """Write a leaf's number, start and length to `leaf`.

    Returns the next position; NOT_ONE if the bytes are invalid.
    """
    leaf[1], leaf[2] = 0, 0
    if kind in (INT, LONG, ENUM):
        leaf[0], position = read_number(data, position, end, _LONG_BITS)
        if kind == INT and not -(1 << (_INT_BITS - 1)) <= leaf[0] < 1 << (_INT_BITS - 1):
            return NOT_ONE
        return NOT_ONE if kind == ENUM and not 0 <= leaf[0] < size else position
    length = size
    if kind == BYTES:
        length, position = read_number(data, position, end, _LONG_BITS)
    if position == NOT_ONE or length < 0 or length > end - position:
        return NOT_ONE
    if kind in (BYTES, FIXED):
        leaf[1], leaf[2] = position, length
        return position + length
    leaf[0] = _read_bits(data, position, length)
    return NOT_ONE if kind == BOOLEAN and leaf[0] > 1 else position + length


@compiled
def read_leaves(
    data: Bytes,
    edges: Int32s,
    header_bytes: int,
    leaves: Int64s,
    wanted: Bytes,
    numbers: Int64s,
    starts: Int32s,
    lengths: Int32s,
) -> None:
    """Write the leaves of each wanted payload to `numbers`, `starts` and `lengths`.

    These arrays have a row per leaf and a column per payload. Length -1 means null. A row of
    `leaves` contains a leaf's kind, its size and the position of null in its union. The size is the
    length in bytes of a fixed-length value, or an enum's number of symbols. The function sets
    `wanted` to 0 for each payload that it cannot read.
    """
    leaf = np.empty(3, dtype=np.int64)
    for row in range(len(wanted)):
        if not wanted[row]:
            continue
        position, end = edges[row] + header_bytes, edges[row + 1]
        for number in range(leaves.shape[0]):
            null_at = leaves[number, 2]
            leaf[0], leaf[1], leaf[2] = 0, 0, -1
            branch = -2
            if null_at != NOT_NULL:
                branch, position = read_number(data, position, end, _LONG_BITS)
                if position == NOT_ONE or not 0 <= branch <= 1:
                    position = NOT_ONE
                    break
            if branch != null_at:
                position = _read_leaf(
                    data, position, end, leaves[number, 0], leaves[number, 1], leaf
                )
                if position == NOT_ONE:
                    break
            numbers[number, row] = leaf[0]
            starts[number, row] = leaf[1]
            lengths[number, row] = leaf[2]
        if position == NOT_ONE:
            wanted[row] = 0
