"""A topic of a real broker whose segments a test writes into a store, without a manager."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from rlmm.events.claim import LeadershipClaimed
from rlmm.events.segment import SegmentEvent
from rlmm.spi import RemoteLogMetadataManager
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.local_segment import BytesSource, LogSegmentData, SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.spi import CopyAttempt
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from tests.segment_builder import BuiltSegment

_LINEAGE = Lineage.of((0, 0))


class _NoBounds(CopyAttempt):
    def check(self) -> None:
        """Do nothing: an attempt without a deadline."""


class StoredTopic:
    """One partition, which the constructor claims."""

    def __init__(
        self, partition: TopicIdPartition, store: Path, metadata: RemoteLogMetadataManager
    ) -> None:
        self.partition = partition
        self._metadata = metadata
        self._writer = Writer(broker_id=1, leader_epoch=0, incarnation=uuid4())
        self._storage = SegmentStorageManager(
            storage=FilesystemChunkStorage(store), keys=ObjectKeys(), layouts=[RawLayout()]
        )
        claim = LeadershipClaimed(
            event_id=uuid4(),
            topic_id_partition=partition,
            writer=self._writer,
            lineage=_LINEAGE,
        )
        assert metadata.publish(claim).accepted

    def store(self, segment: BuiltSegment, *, max_timestamp_ms: int) -> None:
        """Copy a segment of leader epoch 0 and record it as finished."""
        segment_id = RemoteLogSegmentId(topic_id_partition=self.partition, id=uuid4())
        stored_as = self._storage.plan_objects(
            segment_id, segment.offsets.start_offset, size_bytes=len(segment.log)
        )
        planned = RemoteLogSegmentMetadata(
            segment_id=segment_id,
            offsets=segment.offsets,
            max_timestamp_ms=max_timestamp_ms,
            segment_size_bytes=len(segment.log),
            segment_leader_epochs=_LINEAGE.within(segment.offsets),
            state=SegmentState.COPY_SEGMENT_STARTED,
            writer=self._writer,
            event_timestamp_ms=0,
            layout=stored_as.layout,
            objects=stored_as.objects,
        )
        companions = SegmentCompanions(
            offset_index=segment.offset_index,
            time_index=segment.time_index,
            transaction_index=None,
            producer_snapshot=None,
            lineage=_LINEAGE,
            aborted_transactions=(),
        )
        data = LogSegmentData(
            offsets=segment.offsets, log=BytesSource(content=segment.log), companions=companions
        )
        copied = self._storage.copy_log_segment_data(planned, data, _NoBounds())
        finished = replace(
            planned, state=SegmentState.COPY_SEGMENT_FINISHED, objects=copied.objects
        )
        assert self._metadata.publish(SegmentEvent(event_id=uuid4(), metadata=finished)).accepted

    def close(self) -> None:
        """Release the store."""
        self._storage.close()
