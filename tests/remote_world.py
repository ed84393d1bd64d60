"""One partition's stored segments in memory: real segments, a real storage manager and metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from itertools import cycle
from typing import Any
from uuid import UUID

from rlm.remote_read.reader import RemoteLogReader
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.anomaly import ANOMALIES_MAX_COUNT, AnomalyReported
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.gaps import GapsRecorded
from rlmm.events.log_start import LogStartAdvanced
from rlmm.events.partition_delete import RemotePartitionDeleteMetadata
from rlmm.events.segment import SegmentEvent
from rlmm.follow.follower import FollowerSettings
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.state.partition_state import RemotePartitionDeleteState
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.cache.disk_cached import DiskCachedChunkStorage
from rsm.cache.disk_chunks import DiskChunks
from rsm.layout.block_v1.layout import BlockV1Layout
from rsm.layout.block_v2.layout import BlockV2Layout
from rsm.layout.chunked import ChunkedLayout
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.layout.segment_layout import SegmentLayout
from rsm.manager import SegmentStorageManager
from rsm.read.segment_scan import ScanSettings
from rsm.segment.batches.batch import scan_batches
from rsm.segment.batches.segment_cursor import StoredBatches
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.local_segment import (
    AbortedTransaction,
    BytesSource,
)
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.ranges import ByteRange, OffsetRange
from rsm.storage.memory import MemoryChunkStorage
from tests.log_dir_builder import EPOCH_ZERO, ManualClock
from tests.segment_builder import BuiltSegment, build_batches, build_segment
from tests.segment_storing import planned_segment, store_segment, stream_segment

TIP = TopicIdPartition(topic_id=UUID(int=7), topic="orders", partition=3)
WRITER = Writer(broker_id=1, leader_epoch=9, incarnation=UUID(int=1))
LAYOUTS: tuple[SegmentLayout, ...] = (
    RawLayout(),
    BlockV1Layout(block_bytes=4_096),
    BlockV2Layout(block_bytes=4_096),
    ChunkedLayout(max_chunk_bytes=4_096),
)
WHOLE = ByteRange(start_position=0, end_position=1 << 40)


class InlineExecutor(Executor):
    """Runs each submitted call at once, and counts the calls."""

    def __init__(self) -> None:
        self.submitted_count = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted_count += 1
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - handed to the caller that asks for the result
            future.set_exception(error)
        return future


class RemoteWorld:
    """A store and a metadata topic, first empty and without a claim."""

    def __init__(
        self, objects: MemoryChunkStorage | None = None, *, disk: DiskChunks | None = None
    ) -> None:
        """With `disk`, the storage manager caches its reads there."""
        self.clock = ManualClock()
        self.log = MemoryLog(self.clock)
        self.metadata = self.connect()
        self.objects = objects or MemoryChunkStorage(wall_ms=self.clock.wall_ms)
        self._chunks = self.objects if disk is None else DiskCachedChunkStorage(self.objects, disk)
        self.write_as("raw")
        self.executor = InlineExecutor()
        self._count = 100

    def write_as(self, layout: str) -> None:
        """Store the next segments in this layout; segments in others stay readable."""
        ordered = sorted(LAYOUTS, key=lambda each: each.name != layout)
        self.storage = SegmentStorageManager(
            storage=self._chunks, keys=ObjectKeys(), layouts=ordered
        )

    def connect(self) -> TopicBasedRemoteLogMetadataManager:
        """Return one more process that follows the metadata topic, and has caught up."""
        settings = ManagerSettings(follower=FollowerSettings(poll_timeout_ms=0))
        manager = TopicBasedRemoteLogMetadataManager(
            MemoryTopic(self.log), MetadataCache(MemoryStore()), self.clock, settings
        )
        assert manager.wait_ready(10_000).is_ready
        return manager

    def reader(self, *, fetch_bytes: int = 1 << 16, ahead_count: int = 1) -> RemoteLogReader:
        settings = ScanSettings(fetch_bytes=fetch_bytes, ahead_count=ahead_count)
        return RemoteLogReader(self.metadata, self.storage, self.executor, settings)

    def claim(self, lineage: Lineage = EPOCH_ZERO, partition: TopicIdPartition = TIP) -> None:
        event = LeadershipClaimed(
            event_id=self._id(), topic_id_partition=partition, writer=WRITER, lineage=lineage
        )
        assert self.metadata.publish(event).accepted

    def advance_log_start(self, offset: int) -> None:
        event = LogStartAdvanced(
            event_id=self._id(), topic_id_partition=TIP, writer=WRITER, offset=offset, reason="test"
        )
        assert self.metadata.publish(event).accepted

    def begin_deletion(self, metadata: RemoteLogSegmentMetadata) -> None:
        event = SegmentEvent(
            event_id=self._id(),
            metadata=replace(metadata, state=SegmentState.DELETE_SEGMENT_STARTED, writer=WRITER),
            expected_state=metadata.state,
        )
        assert self.metadata.publish(event).accepted

    def begin_partition_deletion(self) -> None:
        event = RemotePartitionDeleteMetadata(
            event_id=self._id(),
            topic_id_partition=TIP,
            state=RemotePartitionDeleteState.DELETE_PARTITION_MARKED,
            event_timestamp_ms=0,
            broker_id=1,
        )
        assert self.metadata.publish(event).accepted

    def record_gap(self, start_offset: int, *end_offsets: int) -> None:
        """Record adjacent gaps with alternating reasons."""
        bounds = zip((start_offset, *end_offsets), end_offsets, cycle(GapReason), strict=False)
        gaps = tuple(
            RecordedGap(
                offsets=OffsetRange(start_offset=start, end_offset=end),
                reason=reason,
                recorded_ms=0,
            )
            for start, end, reason in bounds
        )
        event = GapsRecorded(event_id=self._id(), topic_id_partition=TIP, writer=WRITER, gaps=gaps)
        assert self.metadata.publish(event).accepted

    def record_anomaly(self, anomaly: Anomaly, partition: TopicIdPartition = TIP) -> None:
        event = AnomalyReported(event_id=self._id(), topic_id_partition=partition, anomaly=anomaly)
        assert self.metadata.publish(event).accepted

    def fill_anomalies(self, segment: UUID, count: int = ANOMALIES_MAX_COUNT) -> None:
        """Record this many anomalies of one segment; by default the maximum number."""
        for number in range(count):
            anomaly = Anomaly(
                segment=segment,
                object_key=f"old-{number}",
                kind=AnomalyKind.MISSING,
                first_ms=1,
                last_ms=1,
                attempts=1,
            )
            self.record_anomaly(anomaly)

    def store(
        self,
        segment: BuiltSegment,
        *,
        lineage: Lineage = EPOCH_ZERO,
        end_offset: int | None = None,
        custom_metadata: bytes = b"",
        aborted: Sequence[AbortedTransaction] = (),
        partition: TopicIdPartition = TIP,
        ledgers: Sequence[int] = (),
    ) -> RemoteLogSegmentMetadata:
        """Copy a segment; `end_offset` is the base of the next one after a compaction gap.

        With `ledgers`, stream it instead, with ledgers that begin at these offsets.
        """
        planned = planned_segment(
            self.storage,
            segment,
            RemoteLogSegmentId(topic_id_partition=partition, id=self._id()),
            writer=WRITER,
            lineage=lineage,
            end_offset=end_offset,
            written_ms=self.clock.wall_ms(),
        )
        stored = (
            stream_segment(
                self.storage, planned, segment, ledgers=ledgers, lineage=lineage, aborted=aborted
            )
            if ledgers
            else store_segment(self.storage, planned, segment, lineage=lineage, aborted=aborted)
        )
        custom_metadata = custom_metadata or stored.custom_metadata
        finished = replace(stored, custom_metadata=custom_metadata)
        event = SegmentEvent(event_id=self._id(), metadata=finished)
        assert self.metadata.publish(event).accepted
        return finished

    def rewrite(self, key: str, content: bytes) -> None:
        """Replace an object without recording that."""
        self.objects.delete_many([key])
        self.objects.create_with_content(key, BytesSource(content=content))

    def _id(self) -> UUID:
        self._count += 1
        return UUID(int=self._count)


def segment_of(
    base_offset: int,
    *,
    batch_count: int = 10,
    records_per_batch: int = 10,
    leader_epoch: int = 0,
    value_bytes: int = 1000,
) -> BuiltSegment:
    """Build a segment, by default 100 offsets in batches of ten, about 10 KB each."""
    return build_segment(
        build_batches(
            batch_count,
            base_offset=base_offset,
            records_per_batch=records_per_batch,
            leader_epoch=leader_epoch,
            value_bytes=value_bytes,
        )
    )


def bytes_of(runs: Sequence[StoredBatches]) -> bytes:
    return b"".join(bytes(run.data) for run in runs)


def positions_of(segment: BuiltSegment) -> list[int]:
    """Return the positions where a segment's batches begin, and the segment's end."""
    begins = [position for position, _ in scan_batches(memoryview(segment.log))]
    return [*begins, len(segment.log)]
