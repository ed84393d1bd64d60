"""Builds partition views from a few numbers: segments of 100 offsets and 1000 bytes each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from rlm.facts.local_log import LocalLog, RolledSegment
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.view import Moment, PartitionView, PolicyLimits
from rlmm.events.policy import PolicyState, TopicPolicy
from rlmm.events.registration import ProcessRegistered
from rlmm.positions import MetadataPosition
from rlmm.spi import NewerRecord, SegmentRecord
from rlmm.state.anomalies import Anomaly
from rlmm.state.partition_state import PartitionState, ReadLease
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject, Writer
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import log_starts

TOPIC_ID = UUID(int=7)
TIP = TopicIdPartition(topic_id=TOPIC_ID, topic="orders", partition=0)
US = Writer(broker_id=1, leader_epoch=5, incarnation=UUID(int=51))
THEM = Writer(broker_id=2, leader_epoch=4, incarnation=UUID(int=42))
LINEAGE = Lineage.of((0, 0))
HOUR_MS = 3_600_000
NOW_MS = 1_000 * HOUR_MS
SEGMENT_BYTES = 1000


def local(
    start: int, end: int, *, age_ms: int = HOUR_MS, size: int = SEGMENT_BYTES
) -> RolledSegment:
    return RolledSegment(
        file_base_offset=start,
        offsets=OffsetRange(start_offset=start, end_offset=end),
        size_bytes=size,
        max_timestamp_ms=NOW_MS - age_ms,
        rolled_ms=NOW_MS - age_ms,
    )


def remote(
    start: int,
    end: int,
    *,
    state: SegmentState = SegmentState.COPY_SEGMENT_FINISHED,
    epochs: Lineage = LINEAGE,
    age_ms: int = HOUR_MS,
    size: int = SEGMENT_BYTES,
    writer: Writer = US,
    number: int = 0,
    copy_deadline_ms: int = 0,
    changed_ms: int = 0,
    is_dead_lettered: bool = False,
    changed_at: MetadataPosition | None = None,
) -> SegmentRecord:
    offsets = OffsetRange(start_offset=start, end_offset=end)
    segment_id = RemoteLogSegmentId(
        topic_id_partition=TIP, id=UUID(int=start * 1_000_000 + end * 100 + number)
    )
    metadata = RemoteLogSegmentMetadata(
        segment_id=segment_id,
        offsets=offsets,
        max_timestamp_ms=NOW_MS - age_ms,
        segment_size_bytes=size,
        segment_leader_epochs=epochs.within(offsets),
        state=state,
        writer=writer,
        event_timestamp_ms=NOW_MS,
        layout="raw",
        objects=(StoredObject(key=f"{start}.log"),),
    )
    return SegmentRecord(
        metadata=metadata,
        copy_deadline_ms=copy_deadline_ms,
        changed_ms=changed_ms,
        is_dead_lettered=is_dead_lettered,
        changed_at=changed_at,
    )


POLICY = TopicPolicy(
    topic="orders",
    topic_id=TOPIC_ID,
    state=PolicyState.ACTIVE,
    retention_ms=-1,
    retention_bytes=-1,
    local_retention_ms=0,
)

NO_LIMITS = PolicyLimits(local_trim_min_age_ms=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The numbers of a view; the defaults are ten rolled segments of which nothing is stored."""

    rolled: tuple[RolledSegment, ...] = tuple(local(i * 100, i * 100 + 100) for i in range(10))
    segments: tuple[SegmentRecord, ...] = ()
    local_start: int = 0
    high_watermark: int = 1050
    last_stable_offset: int | None = None
    log_start: int | None = 0
    trimmed: int | None = None
    log_start_requested: int | None = None
    gateways: tuple[ProcessRegistered, ...] = ()
    policy_position: MetadataPosition | None = None
    read_leases: tuple[ReadLease, ...] = ()
    anomalies: tuple[Anomaly, ...] = ()
    newer: NewerRecord | None = None
    owner: Writer | None = US
    stored_lineage: Lineage = LINEAGE
    checkpoint: Lineage = LINEAGE
    policy: TopicPolicy = POLICY
    limits: PolicyLimits = NO_LIMITS
    in_flight: frozenset[UUID] = frozenset()
    broker_ms: int = NOW_MS
    idle_ms: int = 0

    def view(self) -> PartitionView:
        stable = self.last_stable_offset
        return PartitionView(
            topic_id_partition=TIP,
            policy=self.policy,
            writer=US,
            state=PartitionState(
                owner=self.owner,
                lineage=self.stored_lineage,
                log_starts=log_starts(self.log_start),
                trims=log_starts(self.trimmed),
                log_start_requests=log_starts(self.log_start_requested),
                read_leases=self.read_leases,
                anomalies=self.anomalies,
            ),
            offsets=PartitionOffsets(
                log_start_offset=self.local_start,
                last_stable_offset=self.high_watermark if stable is None else stable,
                high_watermark=self.high_watermark,
            ),
            local=LocalLog(
                rolled=self.rolled,
                active_base_offset=self.rolled[-1].offsets.end_offset if self.rolled else 0,
                active_size_bytes=500,
                active_written_ms=NOW_MS - self.idle_ms,
                checkpoint=self.checkpoint,
            ),
            segments=self.segments,
            in_flight=self.in_flight,
            moment=Moment(wall_ms=NOW_MS, broker_ms=self.broker_ms),
            limits=self.limits,
            gateways=self.gateways,
            policy_position=self.policy_position,
            newer=self.newer,
        )


def stored_up_to(end: int) -> tuple[SegmentRecord, ...]:
    return tuple(remote(start, start + 100) for start in range(0, end, 100))


def policy(**changes: object) -> TopicPolicy:
    return replace(POLICY, **changes)  # type: ignore[arg-type]  # field names are the tests' own
