"""Streams ranges of a log as the manager does between its two metadata events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import uuid4

from bench.segment_copier import UnboundedAttempt
from rlm.facts.local_log import LocalLog, LogPosition
from rlm.policy.stream.permit import OPEN_BYTES
from rlm.source.log_part import JoinedParts
from rlm.source.log_source import LogSource
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.ranges import OffsetRange
from rsm.spi import PlannedObjects, RemoteStorageManager


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentStreamer:
    """Streams ranges of one log as the manager does. Thread-safe if `source` and `storage` are."""

    source: LogSource
    storage: RemoteStorageManager
    partition: TopicIdPartition
    log: LocalLog

    def stream(self, offsets: OffsetRange) -> RemoteLogSegmentMetadata:
        """Stream a range of offsets in parts; return the metadata with the stored objects."""
        segment_id = RemoteLogSegmentId(topic_id_partition=self.partition, id=uuid4())
        planned = self.storage.plan_streamed_objects(
            segment_id, offsets.start_offset, most_bytes=1 << 31
        )
        writer = self.storage.open_segment_writer(
            segment_id,
            PlannedObjects(layout=planned.layout, objects=planned.objects),
            UnboundedAttempt(),
        )
        joined = JoinedParts(offsets.start_offset)
        following, ledger_id = LogPosition(offset=offsets.start_offset), -1
        while following.offset < offsets.end_offset:
            with self.source.open_part(
                self.partition,
                following,
                offsets.end_offset,
                self.log.checkpoint,
                max_bytes=OPEN_BYTES,
            ) as part:
                if part.file_base_offset != ledger_id:
                    ledger_id = part.file_base_offset
                    writer.begin_ledger(ledger_id, part.first_entry_id)
                for piece in part.log.chunks():
                    writer.append(piece)
                part.verify_unchanged()
                joined.append(part)
                following = part.following
        metadata = self._describe(segment_id, planned, joined)
        sealed = writer.seal(metadata, joined.companions(self.log.checkpoint))
        return replace(metadata, objects=sealed.objects)

    def _describe(
        self, segment_id: RemoteLogSegmentId, planned: PlannedObjects, joined: JoinedParts
    ) -> RemoteLogSegmentMetadata:
        return RemoteLogSegmentMetadata(
            segment_id=segment_id,
            offsets=joined.offsets,
            max_timestamp_ms=joined.max_timestamp_ms,
            segment_size_bytes=joined.size_bytes,
            segment_leader_epochs=self.log.checkpoint.within(joined.offsets),
            state=SegmentState.COPY_SEGMENT_STARTED,
            writer=Writer(broker_id=1, leader_epoch=0, incarnation=uuid4()),
            event_timestamp_ms=0,
            layout=planned.layout,
            objects=planned.objects,
        )
