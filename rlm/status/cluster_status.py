"""Joins three sources into the tiering status of the cluster, one row per partition. Pure.

The brokers report where each log begins and ends. The metadata lists the stored segments. The
managers report what blocks copies and trims. If a source does not answer, the values that only this
source knows are None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from rlm.facts.partition_offsets import PartitionOffsets
from rlm.policy.anomalies import open_anomalies
from rlm.status.document import LEADER, PARTITION_REPORT, PartitionReport
from rlm.status.document_parts import ANOMALY, GAP, PARTITION, Json, anomaly_to_json, gap_to_json
from rlmm.events.policy import PolicyState, TopicPolicy
from rlmm.spi import SegmentRecord
from rlmm.state.anomalies import Anomaly, AnomalyKind
from rlmm.state.gaps import RecordedGap
from rlmm.state.partition_state import PartitionState, ReadLease
from rsm.program.json_shape import JsonField, JsonKind, JsonShape
from rsm.segment.coverage import covered_end, log_bytes, stored_end, stored_ranges
from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState

NONE = "none"
NO_OFFSET = -1

READ_LEASE = JsonShape(
    name="BlockingLease",
    meaning="A read lease that blocks the expiry of the partition.",
    fields={
        "holder": JsonField(JsonKind.TEXT, "The job that reads the offsets."),
        "start_offset": JsonField(JsonKind.OFFSET, "First leased offset."),
        "end_offset": JsonField(JsonKind.OFFSET, "Offset after the last leased one."),
        "expires_ms": JsonField(JsonKind.TIME, "When the lease ends, by the brokers' clock."),
    },
)
_REPORTED = PARTITION_REPORT.fields
PARTITION_STATUS = JsonShape(
    name="PartitionStatus",
    meaning="One partition, as the brokers, the metadata and the leader's manager report it. The "
    "manager's fields are null if it does not report the partition. An offset is -1 if there is "
    "none, and null if it is unknown.",
    fields={
        **PARTITION,
        "role": JsonField(
            JsonKind.TEXT,
            "The role that the leader's manager reports: `leader` or `follower`. Without a "
            "report, `none` if the topic is not tiered, else null.",
            is_nullable=True,
        ),
        "leader_epoch": JsonField(JsonKind.COUNT, "The leader's epoch."),
        "log_start_offset": JsonField(
            JsonKind.OFFSET, "First offset of both tiers.", is_nullable=True
        ),
        "local_start_offset": JsonField(
            JsonKind.OFFSET, "First offset of the broker's log.", is_nullable=True
        ),
        "last_tiered_offset": JsonField(
            JsonKind.OFFSET, "Last stored offset of the log's lineage; -1 if nothing is stored."
        ),
        "pending_upload_offset": JsonField(
            JsonKind.OFFSET,
            "First offset that is not stored yet but should be; -1 if there is none.",
            is_nullable=True,
        ),
        "last_stable_offset": JsonField(
            JsonKind.OFFSET, "Kafka's last stable offset.", is_nullable=True
        ),
        "high_watermark": JsonField(JsonKind.OFFSET, "Kafka's high watermark.", is_nullable=True),
        "lag_bytes": _REPORTED["lag_bytes"],
        "lag_segments": _REPORTED["lag_segments"],
        "remote_bytes": _REPORTED["remote_bytes"],
        "remote_overlap_bytes": _REPORTED["remote_overlap_bytes"],
        "remote_segments": JsonField(JsonKind.COUNT, "Number of stored segments."),
        "copy_blocked": _REPORTED["copy_blocked"],
        "trim_blocked": _REPORTED["trim_blocked"],
        "gaps": JsonField(GAP, "Recorded gaps.", is_list=True),
        "leader_id": JsonField(
            JsonKind.COUNT,
            "The leader's broker id; null if there is no leader.",
            is_nullable=True,
        ),
        "policy_state": JsonField(
            JsonKind.TEXT,
            "The topic's state, such as `ACTIVE`; null if it was never tiered.",
            is_nullable=True,
        ),
        "diverged": _REPORTED["diverged"].or_null(),
        "external_start": _REPORTED["external_start"].or_null(),
        "future_timestamps": _REPORTED["future_timestamps"],
        "problem": JsonField(
            JsonKind.TEXT,
            "Why the manager could not evaluate the partition; null if it could.",
            is_nullable=True,
        ),
        "anomalies": JsonField(ANOMALY, "Damaged stored objects.", is_list=True),
        "read_leases": JsonField(READ_LEASE, "Read leases that block expiry.", is_list=True),
        "expiry_blocked": _REPORTED["expiry_blocked"],
        "oldest_unstored_age_ms": _REPORTED["oldest_unstored_age_ms"],
        "stream": _REPORTED["stream"],
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedPartition:
    """Represents a partition as the brokers report it.

    `offsets` is None if the leader did not answer.
    """

    topic_id_partition: TopicIdPartition
    leader_id: int | None
    leader_epoch: int
    offsets: PartitionOffsets | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """Represents a partition as the metadata shows it.

    `policy` is None if the topic was never tiered. The offsets of `leases` do not expire before the
    leases end.
    """

    policy: TopicPolicy | None
    state: PartitionState
    segments: tuple[SegmentRecord, ...]
    leases: tuple[ReadLease, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTopic:
    """Represents a tiered topic that no broker knows.

    **Data loss:** managers delete the topic's stored data unless `is_paused`. `partitions` are
    those with segments that are not deleted yet.
    """

    topic_id: UUID
    topic: str
    partitions: tuple[TopicIdPartition, ...]
    is_paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """Represents the status of one partition.

    An offset is -1 if there is none, and None if it is unknown. `last_tiered_offset` is the last
    stored offset of the log's lineage. `pending_upload_offset` is the first offset that is not
    stored yet but should be. `gaps` are recorded gaps. `role` and `report` come from the leader's
    manager. If it did not answer, the `role` of a tiered topic is None. `report` is None unless
    that manager reports its broker as the leader. `remote_bytes` counts records only once if two
    segments contain them. `anomalies` are damaged stored objects. `leases` are the read leases that
    block expiry. `damaged_from_offset` is the start of the first damaged segment that no operator
    has given up.
    """

    topic_id_partition: TopicIdPartition
    policy_state: str | None
    role: str | None
    leader_id: int | None
    leader_epoch: int
    gaps: tuple[RecordedGap, ...]
    log_start_offset: int | None
    local_start_offset: int | None
    last_tiered_offset: int
    pending_upload_offset: int | None
    last_stable_offset: int | None
    high_watermark: int | None
    remote_bytes: int
    remote_overlap_bytes: int
    remote_segments: int
    report: PartitionReport | None
    anomalies: tuple[Anomaly, ...] = ()
    damaged_from_offset: int | None = None
    leases: tuple[ReadLease, ...] = ()

    @property
    def is_managed(self) -> bool:
        """Return whether the leader's manager should report the partition.

        Returns False if the topic was never tiered, or if its policy is DISABLED.
        """
        return self.policy_state not in (None, PolicyState.DISABLED.name)

    @property
    def unstored_offsets(self) -> int | None:
        """Return how many offsets up to the high watermark are not stored; None if unknown."""
        if self.pending_upload_offset is None or self.high_watermark is None:
            return None
        if self.pending_upload_offset == NO_OFFSET:
            return 0
        return max(0, self.high_watermark - self.pending_upload_offset)

    @property
    def damage(self) -> tuple[Anomaly, ...]:
        """Return the anomalies of segments that no operator has given up."""
        given_up = {a.segment for a in self.anomalies if a.kind is AnomalyKind.LOSS_ACCEPTED}
        return tuple(each for each in self.anomalies if each.segment not in given_up)

    def to_json(self) -> Json:
        """Return the row as `rlm status --json` prints it."""
        tip = self.topic_id_partition
        report = {} if self.report is None else self.report.to_json()
        return {
            "topic": tip.topic,
            "topic_id": id_to_text(tip.topic_id),
            "partition": tip.partition,
            "role": self.role,
            "leader_epoch": self.leader_epoch,
            "log_start_offset": self.log_start_offset,
            "local_start_offset": self.local_start_offset,
            "last_tiered_offset": self.last_tiered_offset,
            "pending_upload_offset": self.pending_upload_offset,
            "last_stable_offset": self.last_stable_offset,
            "high_watermark": self.high_watermark,
            "lag_bytes": report.get("lag_bytes"),
            "lag_segments": report.get("lag_segments"),
            "remote_bytes": self.remote_bytes,
            "remote_overlap_bytes": self.remote_overlap_bytes,
            "remote_segments": self.remote_segments,
            "copy_blocked": report.get("copy_blocked"),
            "trim_blocked": report.get("trim_blocked"),
            "gaps": [gap_to_json(gap) for gap in self.gaps],
            "leader_id": self.leader_id,
            "policy_state": self.policy_state,
            "diverged": report.get("diverged"),
            "external_start": report.get("external_start"),
            "future_timestamps": report.get("future_timestamps"),
            "problem": report.get("problem") or None,
            "anomalies": [anomaly_to_json(each) for each in self.anomalies],
            "read_leases": [_lease_to_json(each) for each in self.leases],
            "expiry_blocked": report.get("expiry_blocked"),
            "oldest_unstored_age_ms": report.get("oldest_unstored_age_ms"),
            "stream": report.get("stream"),
        }


def partition_status(
    led: LedPartition, stored: PartitionMetadata, reports: Mapping[int, PartitionReport]
) -> PartitionStatus:
    """Join the three sources; `reports` maps broker ids to the reports of their managers."""
    finished = [
        record.metadata
        for record in stored.segments
        if record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
    ]
    ranges = stored_ranges(stored.state.lineage, finished)
    end_offset = stored_end(ranges)
    reported = None if led.leader_id is None else reports.get(led.leader_id)
    managed = stored.policy is not None and stored.policy.state is not PolicyState.DISABLED
    unreported = None if managed else NONE
    role = unreported if reported is None else reported.role
    offsets = led.offsets
    local_start = None if offsets is None else offsets.log_start_offset
    starts = [s for s in (local_start, *(r.offsets.start_offset for r in ranges)) if s is not None]
    recorded = stored.state.log_start_offset
    log_start = min(starts, default=None) if recorded is None else recorded
    gaps = tuple(gap.offsets for gap in stored.state.gaps)
    anomalies = open_anomalies(stored.state, finished)
    remote_bytes = log_bytes(ranges)
    pending = None if log_start is None else covered_end(ranges, log_start, gaps=gaps)
    return PartitionStatus(
        topic_id_partition=led.topic_id_partition,
        policy_state=None if stored.policy is None else stored.policy.state.name,
        role=role,
        leader_id=led.leader_id,
        leader_epoch=led.leader_epoch,
        gaps=stored.state.gaps,
        log_start_offset=log_start,
        local_start_offset=local_start,
        last_tiered_offset=NO_OFFSET if end_offset is None else end_offset - 1,
        pending_upload_offset=_pending(stored.policy, offsets, pending),
        last_stable_offset=None if offsets is None else offsets.last_stable_offset,
        high_watermark=None if offsets is None else offsets.high_watermark,
        remote_bytes=remote_bytes,
        remote_overlap_bytes=sum(each.segment_size_bytes for each in finished) - remote_bytes,
        remote_segments=len(finished),
        report=reported if role == LEADER else None,
        anomalies=anomalies,
        damaged_from_offset=_first_damaged_offset(anomalies, finished),
        leases=stored.leases,
    )


def _first_damaged_offset(
    anomalies: Iterable[Anomaly], finished: Iterable[RemoteLogSegmentMetadata]
) -> int | None:
    given_up = {each.segment for each in anomalies if each.kind is AnomalyKind.LOSS_ACCEPTED}
    damaged = {each.segment for each in anomalies} - given_up
    starts = (m.offsets.start_offset for m in finished if m.segment_id.id in damaged)
    return min(starts, default=None)


def is_tiered(policy: TopicPolicy | None, segments: Iterable[SegmentRecord]) -> bool:
    """Return whether the status lists a topic.

    Returns True if the topic is tiered, or if its policy is DISABLED and `segments` is not empty.
    """
    return policy is not None and (
        policy.state is not PolicyState.DISABLED or any(True for _ in segments)
    )


def _lease_to_json(lease: ReadLease) -> Json:
    return {
        "holder": lease.holder,
        "start_offset": lease.offsets.start_offset,
        "end_offset": lease.offsets.end_offset,
        "expires_ms": lease.expires_ms,
    }


def brokers_with_tiered_leaders(
    leds: Iterable[LedPartition], stored: Mapping[TopicIdPartition, PartitionMetadata]
) -> frozenset[int]:
    """Return the brokers that need a manager because they lead partitions of tiered topics.

    The leader of a DISABLED topic needs no manager, even if some of its data is stored.
    """
    return frozenset(
        led.leader_id
        for led in leds
        if led.leader_id is not None
        and (policy := stored[led.topic_id_partition].policy) is not None
        and policy.state is not PolicyState.DISABLED
    )


def _pending(
    policy: TopicPolicy | None, offsets: PartitionOffsets | None, covered_end_offset: int | None
) -> int | None:
    """Return the first offset that is not stored yet but should be; -1 if there is none."""
    if policy is None or policy.state is PolicyState.DISABLED:
        return NO_OFFSET
    if covered_end_offset is None or offsets is None:
        return covered_end_offset
    return covered_end_offset if covered_end_offset < offsets.high_watermark else NO_OFFSET
