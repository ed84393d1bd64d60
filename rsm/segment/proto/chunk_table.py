"""Encodes and decodes a segment's objects: chunks as a table, all others one by one. Pure.

A table contains the chunks' common prefix once, and about ten bytes for each chunk instead of its
key. Each tuple of objects has one encoding, and decoding returns the same tuple.
"""

from __future__ import annotations

from collections.abc import Sequence

from rsm.segment.errors import CorruptError
from rsm.segment.metadata import (
    CHUNKS_MAX_COUNT,
    StoredObject,
    chunk_key,
    chunk_prefix,
    leading_chunks,
)
from rsm.segment.proto import segment_pb2 as pb

# A table's chunks share one copy of the prefix, but each decoded key contains it. The limit is that
# of the most chunks with the longest keys of S3 and GCS. HDFS and Azure allow longer keys, so the
# limit applies to the sum: a longer prefix leaves room for fewer chunks.
_PREFIXES_MAX_BYTES = 1_024 * CHUNKS_MAX_COUNT
_SHOWN_CHARACTERS = 1_024


def encode_objects(message: pb.RemoteLogSegmentMetadata, objects: Sequence[StoredObject]) -> None:
    """Set the fields of `message` that describe objects. Writes a table only for chunks."""
    planned, written = _tabled_counts(objects)
    if planned:
        message.chunks.key_prefix = chunk_prefix(objects[0].key) or ""
        message.chunks.planned_count = planned
        for each in objects[:written]:
            message.chunks.length_bytes.append(each.length_bytes or 0)
            message.chunks.crc32c.append(each.crc32c or 0)
    message.objects.extend(
        pb.StoredObject(key=each.key, length_bytes=each.length_bytes, crc32c=each.crc32c)
        for each in objects[planned:]
    )


def decode_objects(message: pb.RemoteLogSegmentMetadata) -> tuple[StoredObject, ...]:
    """Return all objects that a message names. Raises CorruptError for a malformed table."""
    others = [_object_from_message(each) for each in message.objects[:]]
    if not message.HasField("chunks"):
        return tuple(others)
    table = message.chunks
    check_chunks(table)
    written = zip(table.length_bytes, table.crc32c, strict=True)
    chunks = [
        StoredObject(key=chunk_key(table.key_prefix, number), length_bytes=length, crc32c=crc32c)
        for number, (length, crc32c) in enumerate(written)
    ]
    chunks += [
        StoredObject(key=chunk_key(table.key_prefix, number))
        for number in range(len(chunks), table.planned_count)
    ]
    return (*chunks, *others)


def decode_keys(message: pb.RemoteLogSegmentMetadata) -> tuple[str, ...]:
    """Return the keys of all objects that a message names.

    Raises CorruptError for a malformed table.
    """
    keys = []
    if message.HasField("chunks"):
        check_chunks(message.chunks)
        prefix, planned = message.chunks.key_prefix, message.chunks.planned_count
        keys = [chunk_key(prefix, number) for number in range(planned)]
    return (*keys, *(each.key for each in message.objects))


def check_chunks(table: pb.ChunkTable) -> None:
    """Raise CorruptError for an invalid prefix, count, length or number of checksums."""
    planned, written = table.planned_count, len(table.length_bytes)
    if (
        not table.key_prefix.endswith(".")
        or not 0 < planned <= _max_count(table.key_prefix)
        or not len(table.crc32c) == written <= planned
        or min(table.length_bytes, default=0) < 0
    ):
        raise CorruptError(
            "the segment's chunk table is invalid: a prefix, a count or a length is wrong",
            key_prefix=table.key_prefix[:_SHOWN_CHARACTERS],
            planned=planned,
            lengths=written,
            checksums=len(table.crc32c),
            least_bytes=min(table.length_bytes, default=0),
        )


def _tabled_counts(objects: Sequence[StoredObject]) -> tuple[int, int]:
    """Return how many leading objects fit into a table, and how many of those are written."""
    count = leading_chunks([each.key for each in objects])
    if count:
        count = min(count, _max_count(chunk_prefix(objects[0].key) or ""))
    written = next((n for n in range(count) if not _is_written(objects[n])), count)
    for number in range(written, count):
        if not _is_planned(objects[number]):
            return number, written
    return count, written


def _max_count(prefix: str) -> int:
    """Return how many chunks a table with this prefix may contain."""
    return min(CHUNKS_MAX_COUNT, _PREFIXES_MAX_BYTES // max(1, len(prefix.encode())))


def _is_written(stored: StoredObject) -> bool:
    return stored.length_bytes is not None and stored.crc32c is not None


def _is_planned(stored: StoredObject) -> bool:
    return stored.length_bytes is None and stored.crc32c is None


def _object_from_message(message: pb.StoredObject) -> StoredObject:
    return StoredObject(
        key=message.key,
        length_bytes=message.length_bytes if message.HasField("length_bytes") else None,
        crc32c=message.crc32c if message.HasField("crc32c") else None,
    )
