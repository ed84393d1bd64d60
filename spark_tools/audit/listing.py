"""Lists key ranges, compares them with the metadata, and rechecks objects, on executors.

This module does not import Spark. Memory: one range's expected objects and findings, one page of
the listing, and 8 MiB of an object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
from crc32c import crc32c

from rsm.segment.errors import NotFoundError
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkInfo, ChunkStorage
from spark_tools.audit.findings import Finding, finding_rows
from spark_tools.audit.key_ranges import ExpectedObject, KeyRange
from spark_tools.audit.objects import OF_UNKNOWN_OBJECTS, Age, compare
from spark_tools.connection import StoreConnection

RANGES = pa.schema(
    [
        pa.field("after", pa.string()),
        pa.field("until", pa.string()),
        pa.field("expected", pa.binary()),  # This is an Arrow stream, opaque to Spark.
    ]
)
SUSPECTS = pa.schema([pa.field("object_key", pa.string()), pa.field("read_bytes", pa.bool_())])
SIGHTINGS = pa.schema(
    [
        pa.field("object_key", pa.string()),
        pa.field("length_bytes", pa.int64()),
        pa.field("last_modified_ms", pa.int64()),
        pa.field("crc32c", pa.int64()),
    ]
)
SIGHTINGS_DDL = "object_key string, length_bytes bigint, last_modified_ms bigint, crc32c bigint"
"""The checksum is null if the store keeps none and the bytes were not read."""

_READ_BYTES = 8 << 20


def range_rows(ranges: Iterable[KeyRange]) -> pa.Table:
    """Convert ranges to rows of RANGES."""
    rows = [
        {"after": each.after, "until": each.until, "expected": _packed(each.expected)}
        for each in ranges
    ]
    return pa.Table.from_pylist(rows, schema=RANGES)


def suspect_rows(suspicions: Iterable[Finding], *, read_bytes: bool) -> pa.Table:
    """Return the objects to look up again; `read_bytes` applies to those that must exist."""
    rows = [
        {
            "object_key": each.object_key,
            "read_bytes": read_bytes and each.kind not in OF_UNKNOWN_OBJECTS,
        }
        for each in suspicions
    ]
    return pa.Table.from_pylist(rows, schema=SUSPECTS)


def list_and_compare(
    batches: Iterable[pa.RecordBatch], store: StoreConnection, age: Age, *, read_bytes: bool
) -> Iterator[pa.RecordBatch]:
    """Compare RANGES with the store; yield FINDINGS.

    With `read_bytes`, read each object that must exist and compute its checksum. Raises
    RetriableError if a listing or a read fails.
    """
    storage = store.open_chunks()
    try:
        for batch in batches:
            for row in batch.to_pylist():
                batch_of_expected = pa.ipc.open_stream(row["expected"]).read_next_batch()
                names = KeyRange(after=row["after"], until=row["until"], expected=batch_of_expected)
                expected = [ExpectedObject(**each) for each in batch_of_expected.to_pylist()]
                listed = _listed(storage, store.listed_prefix, names)
                if read_bytes:
                    wanted = {each.key for each in expected if each.must_exist}
                    listed = _read(storage, listed, wanted)
                yield finding_rows(compare(listed, expected, store.keys, age))
    finally:
        storage.close()


def _packed(expected: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, expected.schema) as stream:
        stream.write_batch(expected)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def look_again(
    batches: Iterable[pa.RecordBatch], store: StoreConnection
) -> Iterator[pa.RecordBatch]:
    """Look up SUSPECTS; yield SIGHTINGS of those that exist. Raises RetriableError.

    For a suspect with `read_bytes`, computes the checksum from the object's bytes.
    """
    storage = store.open_chunks()
    try:
        for batch in batches:
            suspects = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            found = [_seen(storage, name, read_bytes) for name, read_bytes in suspects]
            rows = [
                {
                    "object_key": each.name,
                    "length_bytes": each.length_bytes,
                    "last_modified_ms": each.last_modified_ms,
                    "crc32c": each.crc32c,
                }
                for each in found
                if each is not None
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=SIGHTINGS)
    finally:
        storage.close()


def _listed(storage: ChunkStorage, prefix: str, names: KeyRange) -> Iterator[ChunkInfo]:
    for found in storage.list(prefix, after=names.after):
        if not names.contains(found.name):
            return
        yield found


def _read(
    storage: ChunkStorage, listed: Iterable[ChunkInfo], wanted: Collection[str]
) -> Iterator[ChunkInfo]:
    """Replace the wanted objects' checksums with those of their bytes; omit deleted objects."""
    for found in listed:
        if found.name not in wanted:
            yield found
            continue
        with suppress(NotFoundError):
            yield replace(found, crc32c=_checksum(storage, found))


def _seen(storage: ChunkStorage, name: str, read_bytes: bool) -> ChunkInfo | None:  # noqa: FBT001 - a setting
    try:
        found = storage.info(name)
        return replace(found, crc32c=_checksum(storage, found)) if read_bytes else found
    except NotFoundError:
        return None


def _checksum(storage: ChunkStorage, found: ChunkInfo) -> int:
    checksum = 0
    for start in range(0, found.length_bytes, _READ_BYTES):
        end = min(start + _READ_BYTES, found.length_bytes)
        positions = ByteRange(start_position=start, end_position=end)
        checksum = crc32c(storage.read_range(found.name, positions), checksum)
    return checksum
