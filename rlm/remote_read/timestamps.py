"""The first stored record since a time: segments by their maximum, time index, then the batches.

As Kafka's RemoteLogManager.findOffsetByTimestamp: a segment whose greatest timestamp is older is
not looked into, and what lies outside the lineage or below the log start never answers.
"""

from __future__ import annotations

from rlm.policy.coverage import StoredRange
from rlm.remote_read.locate import readable_ranges
from rlm.remote_read.reader import RemoteLogReader
from rlm.remote_read.segment_cursor import StoredBatches
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.batch import scan_batches
from rsm.segment.ids import TopicIdPartition
from rsm.segment.indexes import TimeIndex
from rsm.segment.records import decode_records
from rsm.spi import IndexType, RemoteStorageManager


class RemoteTimestamps:
    """Answers over stored segments. Thread-safe."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        storage: RemoteStorageManager,
        reader: RemoteLogReader,
    ) -> None:
        self._metadata = metadata
        self._storage = storage
        self._reader = reader

    def offset_since(self, topic_id_partition: TopicIdPartition, timestamp_ms: int) -> int | None:
        """The offset of the first record with a timestamp of at least `timestamp_ms`, if any.

        Raises as `RemoteLogReader.scan`.
        """
        for stored in readable_ranges(self._metadata, topic_id_partition):
            if stored.metadata.max_timestamp_ms < timestamp_ms:
                continue
            found = self._in_segment(stored, timestamp_ms)
            if found is not None:
                return found
        return None

    def _in_segment(self, stored: StoredRange, timestamp_ms: int) -> int | None:
        offsets = stored.metadata.offsets
        index = TimeIndex.parse(
            self._storage.fetch_index(stored.metadata, IndexType.TIMESTAMP), offsets=offsets
        )
        from_offset = max(index.lookup(timestamp_ms).offset, stored.offsets.start_offset)
        if from_offset not in stored.offsets:
            return None
        for run in self._reader.scan_segment(stored, from_offset):
            found = _in_run(run, timestamp_ms, stored.offsets.start_offset)
            if found is not None:
                return found
        return None


def _in_run(run: StoredBatches, timestamp_ms: int, start_offset: int) -> int | None:
    for position, header in scan_batches(run.data):
        if header.max_timestamp_ms < timestamp_ms:
            continue
        if header.is_control:  # a marker counts, as the broker's own search counts it
            return header.base_offset
        batch = run.data[position : position + header.length_bytes]
        for record in decode_records(header, batch):
            if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                return record.offset
    return None
