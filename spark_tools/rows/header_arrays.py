"""Record headers of many records as one Arrow list array. Pure.

Records have few headers: the first of all records is decoded at once, then the second, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rsm.segment.errors import CorruptError
from spark_tools.rows.binary_spans import Spans, gather
from spark_tools.rows.schema import arrow_schema
from spark_tools.rows.varints import Bytes, Ints, decode_varints


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderSpans:
    """Where each record's headers lie, [start, end), and how many they are."""

    starts: Ints
    ends: Ints
    counts: Ints


def headers_array(data: Bytes, records: HeaderSpans) -> pa.Array:
    """A list of (key, value) per record, null for none, as Spark's Kafka source has them.

    Keys are UTF-8 that no broker checks; what isn't is shown as Java clients show it. CorruptError
    if headers are not within their record.
    """
    list_type = arrow_schema(["headers"]).field("headers").type
    count = len(records.counts)
    total = int(records.counts.sum())
    if total == 0:
        return pa.nulls(count, list_type)
    names, values = _all_spans(data, records, total)
    buffer = pa.py_buffer(data)
    items = pa.StructArray.from_arrays(
        [_as_text(gather(buffer, names)), gather(buffer, values)], fields=list(list_type.value_type)
    )
    edges = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(records.counts, out=edges[1:])
    is_none = pa.array(records.counts == 0)
    return pa.ListArray.from_arrays(pa.array(edges), items, type=list_type, mask=is_none)


def _all_spans(data: Bytes, records: HeaderSpans, total: int) -> tuple[Spans, Spans]:
    """The names and the values of all headers, in order of the records."""
    if total > int((records.ends - records.starts).sum()):
        raise CorruptError("more headers than fit")
    first_places = np.cumsum(records.counts) - records.counts
    fields = np.empty((5, total), dtype=np.int64)
    cursor = records.starts.copy()
    rows = np.flatnonzero(records.counts > 0)
    number = 0
    while rows.size:
        places = first_places[rows] + number
        name_starts, name_ends, _ = _field(data, cursor[rows], records.ends[rows], nullable=False)
        value_starts, value_ends, is_null = _field(
            data, name_ends, records.ends[rows], nullable=True
        )
        fields[:, places] = (name_starts, name_ends, value_starts, value_ends, is_null)
        cursor[rows] = value_ends
        number += 1
        rows = rows[records.counts[rows] > number]
    if not bool((cursor == records.ends)[records.counts > 0].all()):
        raise CorruptError("headers don't fill their record")
    never = np.zeros(total, dtype=np.bool_)
    return (
        Spans(starts=fields[0], ends=fields[1], is_null=never),
        Spans(starts=fields[2], ends=fields[3], is_null=fields[4].astype(np.bool_)),
    )


def _field(data: Bytes, positions: Ints, ends: Ints, *, nullable: bool) -> tuple[Ints, Ints, Ints]:
    """Start, end and whether it is null, of the bytes behind a length."""
    lengths, starts = decode_varints(data, np.minimum(positions, ends))
    is_null = (lengths == -1) & nullable
    lengths = np.where(is_null, 0, lengths)
    if bool((lengths < 0).any()) or bool((lengths > ends - starts).any()):
        raise CorruptError("a header is not within its record")
    return starts, starts + lengths, is_null.astype(np.int64)


def _as_text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", errors="replace") for name in names.to_pylist()])
