"""Reads a store in each way, and returns the results as JSON.

The manager's reader reads batches, and the Spark jobs' reader reads records. Companions and lookups
by time are read, too. Large values are digests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256

from crc32c import crc32c

from rlm.remote_read.reader import RemoteLogReader
from rlm.remote_read.timestamps import RemoteTimestamps
from rlmm.lookup import Absence, NotStored, locate
from rlmm.spi import RemoteLogMetadataManager, SegmentRecord
from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.keys import ObjectKeys
from rsm.layout.originals import OriginalsKeys, decode_originals
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.read.segment_scan import ScanSettings
from rsm.segment.batches.batch import BatchHeader, scan_batches
from rsm.segment.batches.compression import CompressionType
from rsm.segment.batches.records import Record, decode_records
from rsm.segment.batches.segment_cursor import StoredBatches
from rsm.segment.errors import NotFoundError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import ByteRange
from rsm.spi import IndexType, RemoteStorageManager
from rsm.storage.chunk_storage import ChunkInfo, ChunkStorage
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import SegmentPiece, plan
from spark_tools.reading.segment_reader import read_piece
from spark_tools.stored_partition import StoredPartition
from tests.fakes.executor import SynchronousExecutor
from tests.released_states.metadata_answers import Json, checksum_text, partition_text

_STORED = (SegmentState.COPY_SEGMENT_FINISHED,)
_EXISTING = frozenset(SegmentState) - {SegmentState.DELETE_SEGMENT_FINISHED}
_STEP_MS = 30_000
_COLUMNS = "key,value,topic,partition,offset,timestamp,timestampType,headers,leader_epoch"


def open_segments(storage: ChunkStorage) -> SegmentStorageManager:
    """Open a store with every layout that this version reads."""
    return SegmentStorageManager(
        storage=storage,
        keys=ObjectKeys(),
        layouts=(RawLayout(), BlockV1Layout(), BlockV2Layout(), ChunkedLayout(max_chunk_bytes=1)),
    )


def store_answers(
    storage: ChunkStorage, metadata: RemoteLogMetadataManager, tips: Iterable[TopicIdPartition]
) -> Json:
    """Return all that can be read of these partitions, and the other objects of the store."""
    tips = tuple(tips)
    segments = open_segments(storage)
    return {
        "objects": [_object(storage, info) for info in storage.list("")],
        "unreferenced": unreferenced(storage, metadata, tips),
        "originals": [_originals(storage, info) for info in storage.list(OriginalsKeys().of_all)],
        "segments": [
            _segment(segments, record.metadata) for tip in tips for record in stored(metadata, tip)
        ],
        "partitions": {
            partition_text(tip): _partition(segments, metadata, tip)
            for tip in tips
            if metadata.earliest_log_offset(tip) is not None
        },
    }


def stored(metadata: RemoteLogMetadataManager, tip: TopicIdPartition) -> Iterator[SegmentRecord]:
    """Return the finished segments of a partition."""
    return metadata.list_remote_log_segments(tip, states=_STORED)


def unreferenced(
    storage: ChunkStorage, metadata: RemoteLogMetadataManager, tips: Iterable[TopicIdPartition]
) -> list[str]:
    """Return objects that no segment of these partitions names, without topics' originals."""
    named = {
        each.key
        for tip in tips
        for record in metadata.list_remote_log_segments(tip, states=tuple(_EXISTING))
        for each in record.metadata.objects
    }
    names = (info.name for info in storage.list(""))
    return [each for each in names if each not in named and OriginalsKeys().parse(each) is None]


def content(storage: ChunkStorage, info: ChunkInfo) -> bytes:
    """Return the content of a whole object."""
    return storage.read_range(
        info.name, ByteRange(start_position=0, end_position=info.length_bytes)
    )


def _object(storage: ChunkStorage, listed: ChunkInfo) -> Json:
    info = storage.info(listed.name)
    return {
        "name": info.name,
        "length_bytes": info.length_bytes,
        "crc32c": checksum_text(crc32c(content(storage, info))),
        "attributes": dict(info.attributes),
    }


def _originals(storage: ChunkStorage, info: ChunkInfo) -> Json:
    found = decode_originals(content(storage, info))
    return {
        "topic": found.topic,
        "topic_id": str(found.topic_id),
        "values": dict(found.values),
    }


def _segment(segments: RemoteStorageManager, metadata: RemoteLogSegmentMetadata) -> Json:
    """Read a segment as a whole, and in pieces that begin and end anywhere."""
    size = metadata.segment_size_bytes
    log = segments.fetch_log_segment(metadata, ByteRange(start_position=0, end_position=size))
    pieces = (
        segments.fetch_log_segment(
            metadata, ByteRange(start_position=start, end_position=min(start + 1_000, size))
        )
        for start in range(0, size, 1_000)
    )
    assert b"".join(pieces) == log, metadata
    return {
        "id": str(metadata.segment_id.id),
        "log": _digest(log),
        "indexes": {each.value: _index(segments, metadata, each) for each in IndexType},
        "aborted_transactions": [
            [each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset]
            for each in segments.fetch_aborted_transactions(metadata)
        ],
    }


def _index(
    segments: RemoteStorageManager, metadata: RemoteLogSegmentMetadata, kind: IndexType
) -> str | None:
    try:
        return segments.fetch_index(metadata, kind).hex()
    except NotFoundError:
        return None


def _partition(
    segments: RemoteStorageManager, metadata: RemoteLogMetadataManager, tip: TopicIdPartition
) -> Json:
    reader = RemoteLogReader(metadata, segments, SynchronousExecutor(), ScanSettings(ahead_count=0))
    timestamps = RemoteTimestamps(metadata, reader)
    batches = list(_batches(reader, metadata, tip))
    times_ms = sorted(
        {header.max_timestamp_ms + each for header, _ in batches for each in (0, _STEP_MS)}
    )
    newest = timestamps.record_of_max_timestamp(tip)
    return {
        "batches": [_batch(header, data) for header, data in batches],
        "offsets_since": [[ms, timestamps.offset_since(tip, ms)] for ms in times_ms],
        "newest_record": None if newest is None else [newest.offset, newest.timestamp_ms],
        "records": {
            isolation: list(_records(segments, metadata, tip, isolation))
            for isolation in ("read_uncommitted", "read_committed")
        },
    }


def _batches(
    reader: RemoteLogReader, metadata: RemoteLogMetadataManager, tip: TopicIdPartition
) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield batches from the log's start to the end of what is stored, across recorded gaps."""
    offset = metadata.partition_state(tip).first_readable_offset or 0
    while True:
        scan = reader.scan(tip, offset)
        for run in scan:
            yield from _batches_of(run)
        found = locate(metadata, tip, scan.next_offset)
        if not isinstance(found, NotStored) or found.absence is not Absence.RECORDED_GAP:
            return
        assert found.until_offset is not None, "a recorded gap has no end"
        offset = found.until_offset


def _batches_of(run: StoredBatches) -> Iterator[tuple[BatchHeader, bytes]]:
    for position, header in scan_batches(run.data):
        yield header, bytes(run.data[position : position + header.length_bytes])


def _batch(header: BatchHeader, data: bytes) -> Json:
    return {
        "offsets": [header.base_offset, header.next_offset],
        "magic": header.magic,
        "codec": CompressionType(header.compression_id).name,
        "leader_epoch": header.partition_leader_epoch,
        "bytes": _digest(data),
        "records": _digest(repr([_record(each) for each in decode_records(header, data)]).encode()),
    }


def _record(record: Record) -> list[object]:
    kind = record.timestamp_type.value
    return [record.offset, record.timestamp_ms, kind, record.key, record.value, record.headers]


def _records(
    segments: RemoteStorageManager,
    metadata: RemoteLogMetadataManager,
    tip: TopicIdPartition,
    isolation: str,
) -> Iterator[list[object]]:
    """Yield offset and digest of each record, as the Spark jobs read them."""
    partition = StoredPartition(
        topic_id_partition=tip,
        state=metadata.partition_state(tip),
        segments=tuple(record.metadata for record in stored(metadata, tip)),
    )
    options = ReadOptions.of({"subscribe": tip.topic, "isolation": isolation, "columns": _COLUMNS})
    for piece in plan(partition, options):
        assert isinstance(piece, SegmentPiece), piece
        for rows in read_piece(piece, segments, options):
            for row in rows.to_pylist():
                yield [row["offset"], _digest(json.dumps(row, default=_plain).encode())]


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]
