"""The store's names cut into ranges, each with what the metadata expects there. Pure.

Ranges follow the expected names, so that they take about as long to list as each other; together
they hold every name there can be below the prefix, expected or not. What is expected is held in
columns, sorted by name: for each object its name and about 20 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState

_MAY_BE_ABSENT = frozenset(
    {
        SegmentState.COPY_SEGMENT_STARTED,
        SegmentState.DELETE_SEGMENT_STARTED,
        SegmentState.DELETE_SEGMENT_FINISHED,
    }
)
EXPECTED = pa.schema(
    [
        pa.field("key", pa.large_string()),  # together they may take more than 2 GiB
        pa.field("length_bytes", pa.int64()),
        pa.field("crc32c", pa.int64()),
        pa.field("must_exist", pa.bool_()),
    ]
)
_GATHERED_OBJECTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedObject:
    """An object that the metadata names. `must_exist`: its segment is finished.

    Length and checksum are -1 where they are not recorded. Whose it is may be left out.
    """

    key: str
    length_bytes: int
    crc32c: int
    must_exist: bool
    topic: str = ""
    partition: int = -1
    segment_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """Names behind `after` up to and with `until`, by their UTF-8 bytes; None: to the end.

    `expected` are EXPECTED, ascending by name.
    """

    after: str
    until: str | None
    expected: pa.Table

    def holds(self, name: str) -> bool:
        """Whether a name that a listing behind `after` gave is still in the range."""
        return self.until is None or name.encode() <= self.until.encode()


def expected_objects(segments: Iterable[RemoteLogSegmentMetadata]) -> Iterator[ExpectedObject]:
    """All objects of some segments, in no order."""
    for metadata in segments:
        for stored in metadata.objects:
            yield ExpectedObject(
                key=stored.key,
                length_bytes=-1 if stored.length_bytes is None else stored.length_bytes,
                crc32c=-1 if stored.crc32c is None else stored.crc32c,
                must_exist=metadata.state not in _MAY_BE_ABSENT,
                topic=metadata.topic_id_partition.topic,
                partition=metadata.topic_id_partition.partition,
                segment_id=str(metadata.segment_id),
            )


def expected_table(segments: Iterable[RemoteLogSegmentMetadata]) -> pa.Table:
    """The same as EXPECTED, ascending by name as UTF-8 bytes."""
    batches: list[pa.RecordBatch] = []
    rows: list[tuple[str, int, int, bool]] = []
    for metadata in segments:
        must_exist = metadata.state not in _MAY_BE_ABSENT
        for stored in metadata.objects:
            length_bytes = -1 if stored.length_bytes is None else stored.length_bytes
            crc32c = -1 if stored.crc32c is None else stored.crc32c
            rows.append((stored.key, length_bytes, crc32c, must_exist))
        if len(rows) >= _GATHERED_OBJECTS:
            batches.append(_gathered(rows))
            rows = []
    batches.append(_gathered(rows))
    table = pa.Table.from_batches(batches, schema=EXPECTED)
    return table.take(pc.sort_indices(table, sort_keys=[("key", "ascending")]))


def _gathered(rows: list[tuple[str, int, int, bool]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    arrays = [pa.array(column, field.type) for column, field in zip(columns, EXPECTED, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=EXPECTED)


def key_ranges(expected: pa.Table, *, objects_per_range: int) -> Iterator[KeyRange]:
    """At least one range, ascending; every name is in exactly one. `expected` is sorted."""
    after = ""
    for start in range(0, max(expected.num_rows, 1), objects_per_range):
        group = expected.slice(start, objects_per_range)
        is_last = start + objects_per_range >= expected.num_rows
        until = None if is_last else group["key"][-1].as_py()
        yield KeyRange(after=after, until=until, expected=group)
        after = until or ""
