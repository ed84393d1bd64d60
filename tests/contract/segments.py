"""A segment to copy, and attempts that end on request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.local_segment import (
    AbortedTransaction,
    LogSegmentData,
    SegmentCompanions,
    SizedSource,
)
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, Writer
from rsm.segment.ranges import OffsetRange
from rsm.spi import CopiedSegment, CopyAttempt, RemoteStorageManager
from tests.contract.sources import PiecesSource
from tests.segment_builder import pack_batch

LOG_PIECES = (
    pack_batch(b"first batch", base_offset=1000, last_offset=1002, record_count=3),
    pack_batch(b"second batch, a longer one", base_offset=1100, last_offset=1100, leader_epoch=2),
    pack_batch(b"third batch", base_offset=1101, last_offset=1250, leader_epoch=2),
)
LOG = b"".join(LOG_PIECES)
OFFSETS = OffsetRange(start_offset=1000, end_offset=1300)
PARTITION = TopicIdPartition(topic_id=UUID(int=7), topic="orders.eu-1", partition=3)

COMPANIONS = SegmentCompanions(
    offset_index=b"offset index",
    time_index=b"",
    transaction_index=b"transaction index",
    producer_snapshot=b"producer snapshot",
    lineage=Lineage.of((0, 0), (2, 1100), (5, 9000)),
    aborted_transactions=(
        AbortedTransaction(
            producer_id=11, first_offset=1001, last_offset=1400, last_stable_offset=1500
        ),
    ),
)


@dataclass
class CountedAttempt(CopyAttempt):
    """Raises `error` at check number `fails_at` (from 0), and at each later one."""

    error: Exception | None = None
    fails_at: int = 0
    asked_count: int = 0

    def check(self) -> None:
        self.asked_count += 1
        if self.error is not None and self.asked_count > self.fails_at:
            raise self.error


def segment_data(
    log: SizedSource | None = None, companions: SegmentCompanions = COMPANIONS
) -> LogSegmentData:
    source = PiecesSource(pieces=LOG_PIECES) if log is None else log
    return LogSegmentData(offsets=OFFSETS, log=source, companions=companions)


def planned(
    manager: RemoteStorageManager, number: int = 1, *, size_bytes: int = len(LOG)
) -> RemoteLogSegmentMetadata:
    """Return the metadata of a copy that is about to start."""
    segment_id = RemoteLogSegmentId(topic_id_partition=PARTITION, id=UUID(int=number))
    stored_as = manager.plan_objects(segment_id, OFFSETS.start_offset, size_bytes=size_bytes)
    return RemoteLogSegmentMetadata(
        segment_id=segment_id,
        offsets=OFFSETS,
        max_timestamp_ms=1_700_000_000_000,
        segment_size_bytes=size_bytes,
        segment_leader_epochs=Lineage.of((0, 1000), (2, 1100)),
        state=SegmentState.COPY_SEGMENT_STARTED,
        writer=Writer(broker_id=1, leader_epoch=2, incarnation=UUID(int=9)),
        event_timestamp_ms=1_700_000_000_001,
        layout=stored_as.layout,
        objects=stored_as.objects,
        has_transaction_index=True,
    )


def finished(metadata: RemoteLogSegmentMetadata, copied: CopiedSegment) -> RemoteLogSegmentMetadata:
    return replace(
        metadata,
        state=SegmentState.COPY_SEGMENT_FINISHED,
        objects=copied.objects,
        custom_metadata=copied.custom_metadata,
    )


def copied(
    manager: RemoteStorageManager, number: int = 1, attempt: CopyAttempt | None = None
) -> RemoteLogSegmentMetadata:
    """Copy a segment, and return its metadata."""
    metadata = planned(manager, number)
    made = manager.copy_log_segment_data(metadata, segment_data(), attempt or CountedAttempt())
    return finished(metadata, made)
