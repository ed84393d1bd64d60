"""Varints of many records at once, as numpy arrays. Pure.

Zigzag varints as in records of batches v2 (rsm.segment.varint has the same one by one). `data` must
have MAX_VARINT_BYTES of padding behind what positions may point to: positions are checked by who
knows where a record ends, not here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rsm.segment.errors import CorruptError

MAX_VARINT_BYTES = 10

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]


class Decoded(NamedTuple):
    """The values, and where what follows each of them begins."""

    values: Ints
    positions: Ints


def decode_varints(data: Bytes, positions: Ints) -> Decoded:
    """The zigzag varint at each position. CorruptError if one has more than ten bytes."""
    first = data[positions]
    raw = (first & 0x7F).astype(np.uint64)
    ends = positions + 1
    longer = np.flatnonzero(first >= 0x80)
    shift = 7
    while longer.size:
        if shift >= 7 * MAX_VARINT_BYTES:
            raise CorruptError("varint is too long")
        byte = data[ends[longer]]
        raw[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        ends[longer] += 1
        longer = longer[byte >= 0x80]
        shift += 7
    values = (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64)
    return Decoded(values=values, positions=ends)
