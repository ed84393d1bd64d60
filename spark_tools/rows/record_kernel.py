"""Finds the records of many batches of magic 2 as spans of bytes, with compiled code. Pure.

Numba compiles these functions at their first call, in a few seconds, and caches the code in
NUMBA_CACHE_DIR or next to this file. If it cannot write there, each process compiles them again.
The functions release the GIL.

They accept exactly the records that rsm.segment.batches.records accepts. That module reports which
batch is invalid, and how.

The import raises ImportError if numba is not installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., object])

BATCH_FIELDS = 8
"""The columns of `batches`: start and end in the data, number of records, base offset, last offset
delta, base timestamp, maximum timestamp, 1 if the broker set the timestamps."""
SPAN_FIELDS = 6
"""The rows of `spans`: start and length of the key, start and length of the value, start and number
of the headers.

`bounds` are first and end offset, first and last timestamp."""
_START, _END, _COUNT, _BASE_OFFSET, _LAST_DELTA, _BASE_MS, _MAX_MS, _BY_BROKER = range(BATCH_FIELDS)
# A record has these numbers: length, two deltas, lengths of key and value, count of headers.
_FIELDS = 6
_SHORT_BITS = 28  # A number of 28 bits is within the bounds of every field.
_VARINT_BITS = 32
_VARLONG_BITS = 64
NOT_ONE = -1
"""The value of a position or a count if the bytes are invalid."""


def _keeps_code() -> bool:
    """Return whether numba can cache compiled code. It cannot for modules in a zip file."""
    if not Path(__file__).exists():
        return False
    directory = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent)
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
    return os.access(directory, os.W_OK)


_KEEPS_CODE = _keeps_code()


def compiled(function: Function) -> Function:
    """Have numba compile a function at its first call."""
    return cast("Function", numba.njit(cache=_KEEPS_CODE, nogil=True)(function))


@compiled
def read_number(data: Bytes, position: int, end: int, bits: int) -> tuple[int, int]:
    """Return the zigzag number of at most `bits` bits and the next position.

    The next position is NOT_ONE if the number is invalid, or if `position` is NOT_ONE.
    """
    raw = np.uint64(0)
    shift = 0
    while shift < bits and 0 <= position < end:
        byte = data[np.uint64(position)]
        position += 1
        part = np.uint64(byte & np.uint8(0x7F))
        if shift + 7 > bits and part >> np.uint64(bits - shift):
            break
        raw |= part << np.uint64(shift)
        if byte < 0x80:
            # To numba, int() of an unsigned number is unsigned.
            value = np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1))
            return value, position  # type: ignore[return-value]  # an int, to numba
        shift += 7
    return 0, NOT_ONE


@compiled
def _read_span(data: Bytes, position: int, end: int) -> tuple[int, int, int]:
    """Return start and length of length-prefixed bytes, and the next position.

    The length is -1 for null. The next position is NOT_ONE if the bytes are invalid.
    """
    length, start = read_number(data, position, end, _VARINT_BITS)
    if start == NOT_ONE or length < -1 or length > end - start:
        return 0, 0, NOT_ONE
    return start, length, start + max(length, 0)


@compiled
def _after_headers(data: Bytes, position: int, end: int, count: int) -> int:
    """Return the position after `count` headers; NOT_ONE if they are invalid."""
    for _ in range(count):
        _, length, position = _read_span(data, position, end)
        if position == NOT_ONE or length < 0:
            return NOT_ONE
        _, _, position = _read_span(data, position, end)
        if position == NOT_ONE:
            return NOT_ONE
    return position


@compiled
def _read_record(
    data: Bytes, position: int, batch_end: int, spans: Int32s, row: int
) -> tuple[int, int, int]:
    """Write the spans of the record at `position` to a row of `spans`.

    Returns timestamp delta, offset delta, and the next position; NOT_ONE if the record is invalid.
    """
    length, start = read_number(data, position, batch_end, _VARINT_BITS)
    if start == NOT_ONE or length <= 0 or length > batch_end - start:
        return 0, 0, NOT_ONE
    end = start + length
    time_delta, cursor = read_number(data, start + 1, end, _VARLONG_BITS)
    offset_delta, cursor = read_number(data, cursor, end, _VARINT_BITS)
    spans[0, row], spans[1, row], cursor = _read_span(data, cursor, end)
    spans[2, row], spans[3, row], cursor = _read_span(data, cursor, end)
    count, cursor = read_number(data, cursor, end, _VARINT_BITS)
    if cursor == NOT_ONE or count < 0 or _after_headers(data, cursor, end, count) != end:
        return 0, 0, NOT_ONE
    spans[4, row], spans[5, row] = cursor, count
    return time_delta, offset_delta, end


@compiled
def _find_in_batch(  # noqa: C901, PLR0912 - a call per number would take ten times as long
    data: Bytes, batch: Int64s, bounds: Int64s, times: Int64s, spans: Int32s, row: int
) -> int:
    """Do the work of `find_records` for one batch; `row` is the first row to write."""
    first_offset, end_offset, first_ms, last_ms = bounds[0], bounds[1], bounds[2], bounds[3]
    position = batch[_START]
    for _ in range(batch[_COUNT]):
        # This fast path reads nearly all records: those with short numbers and no headers. It is
        # inlined, because one call with an array argument takes longer than reading six numbers.
        cursor, end, time_delta, delta, field = position, batch[_END], 0, 0, 0
        while field < _FIELDS and cursor < end:
            byte = np.int64(data[np.uint64(cursor)])
            cursor += 1
            raw, shift = byte & 0x7F, 7
            while byte >= 0x80 and shift < _SHORT_BITS and cursor < end:
                byte = np.int64(data[np.uint64(cursor)])
                cursor += 1
                raw |= (byte & 0x7F) << shift
                shift += 7
            found = (raw >> 1) ^ -(raw & 1)
            if byte >= 0x80:
                break
            if field == 0:
                if found <= 0 or found > end - cursor:
                    break
                end = cursor + found
                cursor += 1  # This skips the attributes.
            elif field == 1:
                time_delta = found  # type: ignore[assignment]  # an int, to numba
            elif field == 2:
                delta = found  # type: ignore[assignment]  # an int, to numba
            else:
                if found < -1 or found > end - cursor or (found and field == _FIELDS - 1):
                    break
                spans[2 * field - 6, row], spans[2 * field - 5, row] = cursor, found
                cursor += max(found, 0)
            field += 1
        if field == _FIELDS and cursor == end:
            position = end
        else:
            time_delta, delta, position = _read_record(data, position, batch[_END], spans, row)
        if position == NOT_ONE or delta < 0 or delta > batch[_LAST_DELTA]:
            return NOT_ONE
        offset = batch[_BASE_OFFSET] + delta
        time_ms = batch[_MAX_MS] if batch[_BY_BROKER] else batch[_BASE_MS] + time_delta
        if first_offset <= offset < end_offset and first_ms <= time_ms <= last_ms:
            times[0, row], times[1, row] = offset, time_ms
            row += 1
    return row if position == batch[_END] else NOT_ONE


@compiled
def find_records(
    data: Bytes, batches: Int64s, bounds: Int64s, times: Int64s, owners: Int64s, spans: Int32s
) -> int:
    """Write the spans of each record within the bounds, in order; return the number of records.

    The rows of `times` are offsets and timestamps; `owners` are rows of `batches`. SPAN_FIELDS
    describes the rows of `spans`; the length of null is -1. In each of these arrays, a row needs an
    element for each record of the batches. Returns NOT_ONE if a batch's bytes are not valid
    records.
    """
    row = 0
    for number in range(batches.shape[0]):
        first = row
        row = _find_in_batch(data, batches[number], bounds, times, spans, first)
        if row == NOT_ONE:
            return NOT_ONE
        owners[first:row] = number
    return row


@compiled
def find_headers(data: Bytes, starts: Int32s, counts: Int32s, spans: Int32s) -> None:
    """Write the spans of all headers of found records.

    The rows of `spans` are start and length of the name, start and length of the value.
    """
    number = 0
    for row in range(len(starts)):
        position = int(starts[row])
        for _ in range(counts[row]):
            start, length, position = _read_span(data, position, len(data))
            spans[0, number] = start
            spans[1, number] = length
            start, length, position = _read_span(data, position, len(data))
            spans[2, number] = start
            spans[3, number] = length
            number += 1


@compiled
def gather(data: Bytes, starts: Int32s, lengths: Int32s, edges: Int32s, gathered: Bytes) -> None:
    """Copy the spans to `gathered` without gaps; write each start and the last end to `edges`."""
    # The index is unsigned, because a possibly negative one prevents vectorization of the copy.
    position = np.uint64(0)
    for row in range(len(starts)):
        edges[row] = position
        if lengths[row] > 0:
            start, length = np.uint64(starts[row]), np.uint64(lengths[row])
            for number in range(length):
                gathered[position + number] = data[start + number]
            position += length
    edges[len(starts)] = position
