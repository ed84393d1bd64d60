"""Spans of one buffer as an Arrow array, gathered by Arrow itself: no Python object per value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_tools.rows.varints import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Spans [start, end) that ascend without overlap; a null one has no bytes."""

    starts: Ints
    ends: Ints
    is_null: NDArray[np.bool_]

    def chosen(self, rows: Ints) -> Spans:
        """Those of some rows, ascending."""
        return Spans(starts=self.starts[rows], ends=self.ends[rows], is_null=self.is_null[rows])


def gather(data: pa.Buffer, spans: Spans) -> pa.Array:
    """The bytes of each span, in order.

    The buffer is seen as one binary array whose elements are, in turn, a gap and a span; Arrow
    takes every second one.
    """
    count = len(spans.starts)
    edges = np.zeros(2 * count + 1, dtype=np.int32)
    edges[1::2] = spans.starts
    edges[2::2] = spans.ends
    whole = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(edges), data])
    rows = np.arange(1, 2 * count, 2, dtype=np.int64)
    return whole.take(pa.array(rows, mask=spans.is_null))
