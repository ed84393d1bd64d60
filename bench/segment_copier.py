"""Copies rolled segments as the manager does between its two metadata events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import uuid4

from rlm.facts.local_log import LocalLog, RolledSegment
from rlm.source.log_source import LogSource
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.spi import CopyAttempt, RemoteStorageManager


class UnboundedAttempt(CopyAttempt):
    """A copy attempt that has no time limit and is never stopped."""

    def check(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCopier:
    """Copies segments of one log as the manager does. Thread-safe if `source` and `storage` are."""

    source: LogSource
    storage: RemoteStorageManager
    partition: TopicIdPartition
    log: LocalLog

    def copy(self, segment: RolledSegment) -> RemoteLogSegmentMetadata:
        """Copy a segment; return its metadata with the stored objects."""
        lineage, end_offset = self.log.checkpoint, self.log.active_base_offset
        with self.source.open_segment(self.partition, segment, lineage, end_offset) as opened:
            metadata = self._describe(segment)
            copied = self.storage.copy_log_segment_data(metadata, opened.data, UnboundedAttempt())
            opened.verify_unchanged()
        return replace(metadata, objects=copied.objects)

    def _describe(self, segment: RolledSegment) -> RemoteLogSegmentMetadata:
        segment_id = RemoteLogSegmentId(topic_id_partition=self.partition, id=uuid4())
        stored_as = self.storage.plan_objects(
            segment_id, segment.offsets.start_offset, size_bytes=segment.size_bytes
        )
        return RemoteLogSegmentMetadata(
            segment_id=segment_id,
            offsets=segment.offsets,
            max_timestamp_ms=segment.max_timestamp_ms,
            segment_size_bytes=segment.size_bytes,
            segment_leader_epochs=self.log.checkpoint.within(segment.offsets),
            state=SegmentState.COPY_SEGMENT_STARTED,
            writer=Writer(broker_id=1, leader_epoch=0, incarnation=uuid4()),
            event_timestamp_ms=0,
            layout=stored_as.layout,
            objects=stored_as.objects,
        )
