"""Builds metadata events for tests, with short names for partition, segment, writer and state."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from rlmm.events.anomaly import AnomalyReported
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.gaps import GapsRecorded
from rlmm.events.local_trim import LocalLogTrimmed
from rlmm.events.log_start import LogStartAdvanced, LogStartRequested
from rlmm.events.loss import LossAccepted
from rlmm.events.offload import OffloadRequested
from rlmm.events.offload_segment import OffloadSegmentChanged
from rlmm.events.partition_delete import RemotePartitionDeleteMetadata
from rlmm.events.pause import PausableTask, TopicPaused
from rlmm.events.policy import PolicyState, TopicPolicy, TopicPolicyChanged
from rlmm.events.policy_level import PolicyLevel, PolicyLevelSet
from rlmm.events.read_lease import ReadLeaseTaken
from rlmm.events.registration import ProcessRegistered, ProcessRole
from rlmm.events.secret import SECRET_BYTES, ClusterSecretSet, SigningSecret
from rlmm.events.segment import SegmentDeadLettered, SegmentEvent
from rlmm.record_keys import RecordKey, RecordKind
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.state.log_starts import LogStart
from rlmm.state.offload_segments import (
    DriverProperty,
    OffloadPosition,
    OffloadSegmentRecord,
    OffloadSegmentStatus,
)
from rlmm.state.partition_state import RemotePartitionDeleteState
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject, Writer
from rsm.segment.ranges import OffsetRange

STARTED = SegmentState.COPY_SEGMENT_STARTED
FINISHED = SegmentState.COPY_SEGMENT_FINISHED
DELETE_STARTED = SegmentState.DELETE_SEGMENT_STARTED
DELETE_FINISHED = SegmentState.DELETE_SEGMENT_FINISHED

MARKED = RemotePartitionDeleteState.DELETE_PARTITION_MARKED
DELETING = RemotePartitionDeleteState.DELETE_PARTITION_STARTED
DELETED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED

ORDERS = TopicIdPartition(topic_id=UUID(int=0x0DE5), topic="orders", partition=0)
NEWEST_EPOCH = 1_000
OWNER = Writer(broker_id=1, leader_epoch=0, incarnation=UUID(int=0xA1))

_event_numbers: Iterator[int] = itertools.count(1)


def event_id() -> UUID:
    """Return a new id."""
    return UUID(int=next(_event_numbers))


def writer(leader_epoch: int = 0, *, broker_id: int = 1, incarnation: int = 0xA1) -> Writer:
    return Writer(broker_id=broker_id, leader_epoch=leader_epoch, incarnation=UUID(int=incarnation))


def segment_id(number: int, partition: TopicIdPartition = ORDERS) -> RemoteLogSegmentId:
    return RemoteLogSegmentId(topic_id_partition=partition, id=UUID(int=number))


def segment_metadata(
    number: int = 1,
    start_offset: int = 0,
    end_offset: int = 100,
    *,
    epochs: tuple[tuple[int, int], ...] | None = None,
    state: SegmentState = STARTED,
    by: Writer = OWNER,
    partition: TopicIdPartition = ORDERS,
) -> RemoteLogSegmentMetadata:
    name = f"{partition.topic}/{partition.partition}/{start_offset:020}"
    return RemoteLogSegmentMetadata(
        segment_id=segment_id(number, partition),
        offsets=OffsetRange(start_offset=start_offset, end_offset=end_offset),
        max_timestamp_ms=1_000,
        segment_size_bytes=4_096,
        segment_leader_epochs=Lineage.of(*(epochs or ((0, start_offset),))),
        state=state,
        writer=by,
        event_timestamp_ms=2_000,
        layout="raw",
        objects=(StoredObject(key=f"{name}.log"), StoredObject(key=f"{name}.meta")),
    )


def open_segment_metadata(
    number: int = 1,
    start_offset: int = 0,
    *,
    epochs: tuple[tuple[int, int], ...] | None = None,
    by: Writer = OWNER,
) -> RemoteLogSegmentMetadata:
    """Return the metadata of a streamed segment whose end is not known yet."""
    closed = segment_metadata(number, start_offset, start_offset + 1, epochs=epochs, by=by)
    return replace(closed, segment_size_bytes=0, max_timestamp_ms=-1, is_open=True)


def step(
    metadata: RemoteLogSegmentMetadata,
    state: SegmentState,
    *,
    by: Writer | None = None,
    expected_state: SegmentState | None = None,
    copy_timeout_ms: int = 0,
    copy_deadline_ms: int = 0,
) -> SegmentEvent:
    """Return a segment's event with a new id."""
    return SegmentEvent(
        event_id=event_id(),
        metadata=metadata.in_state(state, event_timestamp_ms=3_000, writer=by),
        expected_state=expected_state,
        copy_timeout_ms=copy_timeout_ms,
        copy_deadline_ms=copy_deadline_ms,
    )


def life(metadata: RemoteLogSegmentMetadata, *, by: Writer = OWNER) -> list[SegmentEvent]:
    """Return all four events of a segment's life."""
    return [
        step(metadata, STARTED),
        step(metadata, FINISHED),
        step(metadata, DELETE_STARTED, by=by, expected_state=FINISHED),
        step(metadata, DELETE_FINISHED),
    ]


def claim(
    by: Writer = OWNER, *, lineage: Lineage | None = None, partition: TopicIdPartition = ORDERS
) -> LeadershipClaimed:
    return LeadershipClaimed(
        event_id=event_id(),
        topic_id_partition=partition,
        writer=by,
        lineage=Lineage.of((0, 0)) if lineage is None else lineage,
    )


def trim(
    offset: int,
    *,
    by: Writer = OWNER,
    lineage: Lineage | None = None,
    partition: TopicIdPartition = ORDERS,
) -> LocalLogTrimmed:
    return LocalLogTrimmed(
        event_id=event_id(),
        topic_id_partition=partition,
        writer=by,
        offset=offset,
        lineage=Lineage.of((0, 0)) if lineage is None else lineage,
    )


def log_start(
    offset: int, *, by: Writer = OWNER, partition: TopicIdPartition = ORDERS
) -> LogStartAdvanced:
    return LogStartAdvanced(
        event_id=event_id(),
        topic_id_partition=partition,
        writer=by,
        offset=offset,
        reason="retention.ms",
    )


def log_starts(offset: int | None, *, leader_epoch: int = NEWEST_EPOCH) -> tuple[LogStart, ...]:
    """Return the log starts of a partition's state; empty for None."""
    return () if offset is None else (LogStart(offset, leader_epoch),)


def log_start_request(
    offset: int, *, leader_epoch: int = -1, partition: TopicIdPartition = ORDERS
) -> LogStartRequested:
    return LogStartRequested(
        event_id=event_id(),
        topic_id_partition=partition,
        offset=offset,
        leader_epoch=leader_epoch,
    )


def partition_delete(
    state: RemotePartitionDeleteState, *, partition: TopicIdPartition = ORDERS
) -> RemotePartitionDeleteMetadata:
    return RemotePartitionDeleteMetadata(
        event_id=event_id(),
        topic_id_partition=partition,
        state=state,
        event_timestamp_ms=4_000,
        broker_id=1,
    )


def read_lease(
    lease: int = 1,
    start_offset: int = 0,
    end_offset: int = 100,
    *,
    duration_ms: int = 1_000,
    partition: TopicIdPartition = ORDERS,
) -> ReadLeaseTaken:
    return ReadLeaseTaken(
        event_id=event_id(),
        lease_id=UUID(int=lease),
        topic_id_partition=partition,
        offsets=OffsetRange(start_offset=start_offset, end_offset=end_offset),
        duration_ms=duration_ms,
        holder="an audit",
    )


def gap(start_offset: int, end_offset: int, *, reason: GapReason = GapReason.SHED) -> RecordedGap:
    offsets = OffsetRange(start_offset=start_offset, end_offset=end_offset)
    return RecordedGap(offsets=offsets, reason=reason, recorded_ms=5_000)


def gaps(
    *found: RecordedGap, by: Writer = OWNER, partition: TopicIdPartition = ORDERS
) -> GapsRecorded:
    return GapsRecorded(event_id=event_id(), topic_id_partition=partition, writer=by, gaps=found)


def anomaly(
    segment: int = 1,
    *,
    key: str = "orders/7.log",
    kind: AnomalyKind = AnomalyKind.MISSING,
    last_ms: int = 6_000,
    attempts: int = 3,
) -> Anomaly:
    return Anomaly(
        segment=UUID(int=segment),
        object_key=key,
        kind=kind,
        first_ms=5_000,
        last_ms=last_ms,
        attempts=attempts,
    )


def anomaly_reported(
    found: Anomaly | None = None, *, partition: TopicIdPartition = ORDERS
) -> AnomalyReported:
    return AnomalyReported(
        event_id=event_id(), topic_id_partition=partition, anomaly=found or anomaly()
    )


def loss_accepted(
    leader_epoch: int, local_start_offset: int = 0, *, partition: TopicIdPartition = ORDERS
) -> LossAccepted:
    return LossAccepted(
        event_id=event_id(),
        topic_id_partition=partition,
        leader_epoch=leader_epoch,
        local_start_offset=local_start_offset,
    )


def offload_request(offset: int, *, partition: TopicIdPartition = ORDERS) -> OffloadRequested:
    return OffloadRequested(event_id=event_id(), topic_id_partition=partition, offset=offset)


def offload_segment(
    number: int = 1,
    status: OffloadSegmentStatus = OffloadSegmentStatus.ASSIGNED,
    *,
    by: Writer | None = None,
) -> OffloadSegmentRecord:
    """Return offload segment `number`: 100 offsets in 10 batches of the first local segment."""
    begin = OffloadPosition(ledger_id=0, entry_id=10 * number, offset=100 * number)
    is_offloaded = status is OffloadSegmentStatus.OFFLOADED
    end = OffloadPosition(ledger_id=0, entry_id=10 * number + 10, offset=100 * number + 100)
    return OffloadSegmentRecord(
        id=UUID(int=number),
        status=status,
        writer=by or writer(0),
        assigned_ms=1_000 * number,
        begin=begin,
        segment_ids=(UUID(int=number),),
        driver_metadata=(DriverProperty(name="bucket", value="b"),),
        offloaded_ms=1_000 * number + 500 if is_offloaded else None,
        end=end if is_offloaded else None,
    )


def offload_segment_changed(
    segment: OffloadSegmentRecord | None = None, *, partition: TopicIdPartition = ORDERS
) -> OffloadSegmentChanged:
    return OffloadSegmentChanged(
        event_id=event_id(), topic_id_partition=partition, segment=segment or offload_segment()
    )


def paused(*tasks: PausableTask, topic: str = "orders") -> TopicPaused:
    return TopicPaused(
        event_id=event_id(), topic=topic, topic_id=ORDERS.topic_id, tasks=frozenset(tasks)
    )


def dead_lettered(metadata: RemoteLogSegmentMetadata) -> SegmentDeadLettered:
    return SegmentDeadLettered(event_id=event_id(), segment_id=metadata.segment_id, attempts=5)


def policy(
    state: PolicyState = PolicyState.ACTIVE, *, topic: str = "orders", retention_ms: int = 86_400
) -> TopicPolicyChanged:
    return TopicPolicyChanged(
        event_id=event_id(),
        policy=TopicPolicy(
            topic=topic,
            topic_id=ORDERS.topic_id,
            state=state,
            retention_ms=retention_ms,
            retention_bytes=-1,
        ),
    )


def policy_level(pattern: str = "orders-*", *, retention_ms: int | None = 1) -> PolicyLevelSet:
    level = PolicyLevel(pattern=pattern, retention_ms=retention_ms)
    return PolicyLevelSet(event_id=event_id(), level=level)


def registration(process: int = 1, *, http_address: str = "127.0.0.1:80") -> ProcessRegistered:
    return ProcessRegistered(
        event_id=event_id(),
        process_id=UUID(int=process),
        role=ProcessRole.MANAGER,
        broker_id=1,
        http_address=http_address,
        heartbeat_interval_ms=30_000,
        version="0.1.0",
    )


def secret(number: int) -> SigningSecret:
    return SigningSecret(secret_id=UUID(int=number), key=bytes([number]) * SECRET_BYTES)


def cluster_secret(number: int = 1, *, previous: int | None = None) -> ClusterSecretSet:
    return ClusterSecretSet(
        event_id=event_id(),
        current=secret(number),
        previous=None if previous is None else secret(previous),
    )


def policy_key(topic_id: UUID) -> bytes:
    """Return the only key of a topic id's policy."""
    return RecordKey(kind=RecordKind.POLICY, subject=topic_id.bytes).to_bytes()
