"""Divides the names in the store into ranges, each with its expected objects. Pure.

The expected names set the bounds. So the ranges take about the same time to list, unless the store
contains many unexpected objects. Together, the ranges contain every possible name.

Memory: the expected objects of two ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

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
        pa.field("key", pa.string()),
        pa.field("length_bytes", pa.int64()),
        pa.field("crc32c", pa.int64()),
        pa.field("must_exist", pa.bool_()),
    ]
)

ExpectedRow = tuple[str, int, int, bool]
"""A row of EXPECTED: one object as the metadata records it, without its segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedObject:
    """Represents an object that the metadata names; `must_exist` if its segment is finished.

    Length and checksum are -1 if they are not recorded. Partition, segment and offsets may be
    omitted.
    """

    key: str
    length_bytes: int
    crc32c: int
    must_exist: bool
    topic: str = ""
    partition: int = -1
    segment_id: str = ""
    start_offset: int = -1
    end_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """Represents the names above `after`, up to and including `until`, ordered by UTF-8 bytes.

    The range has no upper bound if `until` is None. `expected` has the schema EXPECTED and ascends
    by name.
    """

    after: str
    until: str | None
    expected: pa.RecordBatch

    def contains(self, name: str) -> bool:
        """Return whether the range contains `name`, which must be above `after`."""
        return self.until is None or name.encode() <= self.until.encode()


def expected_objects(segments: Iterable[RemoteLogSegmentMetadata]) -> Iterator[ExpectedObject]:
    """Yield all objects of these segments, unordered."""
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
                start_offset=metadata.offsets.start_offset,
                end_offset=metadata.offsets.end_offset,
            )


def expected_rows(segments: Iterable[RemoteLogSegmentMetadata]) -> Iterator[ExpectedRow]:
    """Yield all objects of these segments as rows of EXPECTED."""
    for metadata in segments:
        must_exist = metadata.state not in _MAY_BE_ABSENT
        for stored in metadata.objects:
            length_bytes = -1 if stored.length_bytes is None else stored.length_bytes
            crc32c = -1 if stored.crc32c is None else stored.crc32c
            yield stored.key, length_bytes, crc32c, must_exist


def expected_batch(rows: Sequence[ExpectedRow]) -> pa.RecordBatch:
    """Convert rows to a batch of EXPECTED."""
    columns = zip(*rows, strict=True) if rows else [()] * len(EXPECTED)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, EXPECTED, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=EXPECTED)


def key_ranges(expected: Iterable[ExpectedRow], *, objects_per_range: int) -> Iterator[KeyRange]:
    """Yield at least one range, ascending; each name is in one range. `expected` must ascend."""
    remaining = iter(expected)
    after, group = "", list(islice(remaining, objects_per_range))
    while True:
        following = list(islice(remaining, objects_per_range))
        until = group[-1][0] if following else None
        yield KeyRange(after=after, until=until, expected=expected_batch(group))
        if until is None:
            return
        after, group = until, following
