"""Defines how a topic is tiered. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import ClassVar
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import ClusterFamily
from rlmm.events.fold_state import FoldState, Refusal
from rlmm.events.rows import ClusterReader
from rlmm.positions import CLUSTER_PARTITION, MetadataPosition, TopicRecord
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind
from rsm.segment.metadata_codec import enum_from_number, id_from_bytes
from rsm.segment.offload_settings import (
    OFFLOAD_SEGMENT_SHORTEST_MS,
    OffloadMode,
    OffloadSettings,
)
from rsm.segment.proto.unknown_fields import restore_unknown_fields, unknown_fields

UNLIMITED = -1
AS_TOTAL_RETENTION = -2
AS_LOCAL_RETENTION = -1
AS_MANAGERS_SETTING = -1
_OFFSET = Struct(">Q")


class OutagePolicy(Enum):
    """Represents what the manager does if the store is unavailable and the broker's disk fills.

    **Data loss:** with SHED_OLDEST, the manager gives up the oldest unstored data.
    """

    HOLD = 1
    SHED_OLDEST = 2


class PolicyState(Enum):
    """Represents the state of a topic's tiering.

    Trims require ACTIVE; copies require ACTIVE or DISABLING.
    """

    ENABLING = 1
    ACTIVE = 2
    DISABLING = 3
    DISABLED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalConfig:
    """Represents a topic config before tiering; `value` is None if the topic had no override."""

    name: str
    value: str | None


class CopyLagSince(Enum):
    """Represents the event at which a time-based copy lag begins."""

    NEWEST_RECORD = 1  # The lag begins at the largest timestamp in the segment (KIP-1241).
    ROLL = 2  # The lag begins when the broker rolls the segment (PIP-17's offloadTimeInMinutes).


class PolicySetting(Enum):
    """Represents a setting of a topic's policy that a policy level can give."""

    RETENTION_MS = 1
    RETENTION_BYTES = 2
    LOCAL_RETENTION_MS = 3
    LOCAL_RETENTION_BYTES = 4
    COPY_LAG_MS = 5
    COPY_LAG_BYTES = 6
    COPY_LAG_SINCE = 7
    OUTAGE_POLICY = 8
    LOCAL_DELETION_LAG_MS = 9
    OFFLOAD_MODE = 10
    OFFLOAD_SEGMENT_MAX_BYTES = 11
    OFFLOAD_SEGMENT_ROLLOVER_MS = 12
    LAYOUT = 13

    @property
    def field(self) -> str:
        """Return the name of the setting's field in TopicPolicy and PolicyLevel."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPolicy:
    """Represents how one topic is tiered; all inherited values are resolved.

    A retention of -1 is unlimited; a local retention of -2 equals the total one (KIP-405). A copy
    lag of 0 copies at once, and -1 equals the local retention (KIP-1241). The local deletion lag
    (PIP-17) is how long stored data stays local. `layout` is the layout of new segments that are
    not streamed: a built-in name, or the class of a plug-in.

    A manager's own setting applies if the deletion lag or a limit of offload segments (PIP-76) is
    -1, or if the offload mode or the layout is None.

    `inherited` contains the settings that were not set for this topic. When policy levels change,
    the manager of the topic's first partition resolves these settings again. A total retention that
    no level gives is the untiered retention: the topic's retention when it was tiered. In records
    of 0.3.0 and earlier, `inherited` is empty and the untiered retention is None.

    `unknown_fields` contains the additional fields of a newer version, as protobuf.
    """

    topic: str
    topic_id: UUID
    state: PolicyState
    retention_ms: int
    retention_bytes: int
    local_retention_ms: int = AS_TOTAL_RETENTION
    local_retention_bytes: int = AS_TOTAL_RETENTION
    originals: tuple[OriginalConfig, ...] = ()
    delete_remote: bool = False
    copy_lag_ms: int = 0
    copy_lag_bytes: int = 0
    outage_policy: OutagePolicy = OutagePolicy.HOLD
    copy_lag_since: CopyLagSince = CopyLagSince.NEWEST_RECORD
    local_deletion_lag_ms: int = AS_MANAGERS_SETTING
    offload_mode: OffloadMode | None = None
    offload_segment_max_bytes: int = AS_MANAGERS_SETTING
    offload_segment_rollover_ms: int = AS_MANAGERS_SETTING
    layout: str | None = None
    inherited: frozenset[PolicySetting] = frozenset()
    untiered_retention_ms: int | None = None
    untiered_retention_bytes: int | None = None
    unknown_fields: bytes = b""

    @property
    def effective_local_retention_ms(self) -> int:
        local = self.local_retention_ms
        return self.retention_ms if local == AS_TOTAL_RETENTION else local

    @property
    def effective_local_retention_bytes(self) -> int:
        local = self.local_retention_bytes
        return self.retention_bytes if local == AS_TOTAL_RETENTION else local

    @property
    def effective_copy_lag_ms(self) -> int:
        lag = self.copy_lag_ms
        return self.effective_local_retention_ms if lag == AS_LOCAL_RETENTION else lag

    @property
    def effective_copy_lag_bytes(self) -> int:
        lag = self.copy_lag_bytes
        return self.effective_local_retention_bytes if lag == AS_LOCAL_RETENTION else lag

    def effective_offload(self, managers: OffloadSettings) -> OffloadSettings:
        """Return how a manager with these settings offloads the topic.

        The managers' rollover time is limited to the topic's retention. A rollover time of the
        topic itself was checked when it was set.
        """
        max_bytes, rollover_ms = self.offload_segment_max_bytes, self.offload_segment_rollover_ms
        return OffloadSettings(
            mode=self.offload_mode or managers.mode,
            segment_max_bytes=(
                managers.segment_max_bytes if max_bytes == AS_MANAGERS_SETTING else max_bytes
            ),
            segment_rollover_ms=(
                self._within_retention_ms(managers.segment_rollover_ms)
                if rollover_ms == AS_MANAGERS_SETTING
                else rollover_ms
            ),
        )

    def _within_retention_ms(self, rollover_ms: int) -> int:
        """Limit a rollover time; a local retention of 0 sets no limit, as unstored data stays."""
        limits_ms = (self.retention_ms, self.effective_local_retention_ms or UNLIMITED)
        shortest_ms = min((each for each in limits_ms if each != UNLIMITED), default=rollover_ms)
        return min(rollover_ms, max(OFFLOAD_SEGMENT_SHORTEST_MS, shortest_ms))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPolicyChanged(Event):
    """Represents the policy of one topic id; the last record wins."""

    policy: TopicPolicy


class _PolicyPositions:
    """Represents rows with the position of each topic id's policy record."""

    row_prefix: ClassVar[bytes] = b"read"

    def from_row(self, subject: bytes, row: bytes) -> MetadataPosition:
        (offset,) = _OFFSET.unpack(row)
        return MetadataPosition(CLUSTER_PARTITION, offset)


class PolicyFamily(ClusterFamily[TopicPolicyChanged, pb.TopicPolicyChanged, TopicPolicy]):
    """Defines the family of policies; also keeps the positions of their records."""

    event_type = TopicPolicyChanged
    kind = RecordKind.POLICY
    field = "topic_policy_changed"
    row_prefix = b"policy"

    def to_message(self, event: TopicPolicyChanged) -> pb.TopicPolicyChanged:
        return _to_message(event.policy)

    def from_message(self, event_id: UUID, message: pb.TopicPolicyChanged) -> TopicPolicyChanged:
        return TopicPolicyChanged(event_id=event_id, policy=_from_message(message))

    def record_key(self, event: TopicPolicyChanged) -> RecordKey:
        return RecordKey(kind=self.kind, subject=event.policy.topic_id.bytes)

    def topic_of(self, event: TopicPolicyChanged) -> str | None:
        return event.policy.topic

    def value_of(self, event: TopicPolicyChanged, append_time_ms: int) -> TopicPolicy:
        return event.policy

    def fold(
        self, state: FoldState, parsed: TopicPolicyChanged, record: TopicRecord
    ) -> Refusal | None:
        position_row = POLICY_POSITIONS.row_prefix + parsed.policy.topic_id.bytes
        state.put_cluster_row(position_row, _OFFSET.pack(record.offset))
        return super().fold(state, parsed, record)

    def fold_tombstone(self, state: FoldState, key: RecordKey) -> Refusal | None:
        state.put_cluster_row(POLICY_POSITIONS.row_prefix + key.subject, None)
        return super().fold_tombstone(state, key)


POLICIES = PolicyFamily()
POLICY_POSITIONS = _PolicyPositions()


def topic_policies(metadata: ClusterReader) -> tuple[TopicPolicy, ...]:
    """Return the newest policy of each topic id."""
    return metadata.cluster_values(POLICIES)


def topic_policy(metadata: ClusterReader, topic_id: UUID) -> TopicPolicy | None:
    """Return the newest policy of one topic id; None if it has none."""
    return metadata.cluster_value(POLICIES, topic_id.bytes)


def topic_policy_position(metadata: ClusterReader, topic_id: UUID) -> MetadataPosition | None:
    """Return the position of a policy's record; None if there is none, or in an older cache."""
    return metadata.cluster_value(POLICY_POSITIONS, topic_id.bytes)


def _to_message(policy: TopicPolicy) -> pb.TopicPolicyChanged:
    holds = policy.outage_policy is OutagePolicy.HOLD
    by_record = policy.copy_lag_since is CopyLagSince.NEWEST_RECORD
    message = pb.TopicPolicyChanged(
        topic=policy.topic,
        topic_id=policy.topic_id.bytes,
        state=policy.state.name,
        retention_ms=policy.retention_ms,
        retention_bytes=policy.retention_bytes,
        local_retention_ms=policy.local_retention_ms,
        local_retention_bytes=policy.local_retention_bytes,
        originals=[pb.OriginalConfig(name=o.name, value=o.value) for o in policy.originals],
        delete_remote=policy.delete_remote,
        copy_lag_ms=policy.copy_lag_ms,
        copy_lag_bytes=policy.copy_lag_bytes,
        outage_policy=None if holds else policy.outage_policy.name,
        local_deletion_lag_ms=_own(policy.local_deletion_lag_ms),
        copy_lag_since=None if by_record else policy.copy_lag_since.name,
        offload_mode=None if policy.offload_mode is None else policy.offload_mode.name,
        offload_segment_max_bytes=_own(policy.offload_segment_max_bytes),
        offload_segment_rollover_ms=_own(policy.offload_segment_rollover_ms),
        inherited=[each.name for each in PolicySetting if each in policy.inherited],
        untiered_retention_ms=policy.untiered_retention_ms,
        untiered_retention_bytes=policy.untiered_retention_bytes,
        layout=policy.layout,
    )
    restore_unknown_fields(message, policy.unknown_fields)
    return message


def _own(value: int) -> int | None:
    """Return a value that the topic itself sets; None leaves the field absent."""
    return None if value == AS_MANAGERS_SETTING else value


def _from_message(message: pb.TopicPolicyChanged) -> TopicPolicy:
    outage_policy = message.outage_policy or OutagePolicy.HOLD.value
    copy_lag_since = message.copy_lag_since or CopyLagSince.NEWEST_RECORD.value
    return TopicPolicy(
        topic=message.topic,
        topic_id=id_from_bytes(message.topic_id),
        state=enum_from_number(PolicyState, message.state, "policy state"),
        retention_ms=message.retention_ms,
        retention_bytes=message.retention_bytes,
        local_retention_ms=message.local_retention_ms,
        local_retention_bytes=message.local_retention_bytes,
        originals=tuple(
            OriginalConfig(name=o.name, value=o.value if o.HasField("value") else None)
            for o in message.originals
        ),
        delete_remote=message.delete_remote,
        copy_lag_ms=message.copy_lag_ms,
        copy_lag_bytes=message.copy_lag_bytes,
        outage_policy=enum_from_number(OutagePolicy, outage_policy, "outage policy"),
        copy_lag_since=enum_from_number(CopyLagSince, copy_lag_since, "start of a copy lag"),
        local_deletion_lag_ms=_managers_or_own(message, "local_deletion_lag_ms"),
        offload_mode=(
            enum_from_number(OffloadMode, message.offload_mode, "offload mode")
            if message.offload_mode
            else None
        ),
        offload_segment_max_bytes=_managers_or_own(message, "offload_segment_max_bytes"),
        offload_segment_rollover_ms=_managers_or_own(message, "offload_segment_rollover_ms"),
        layout=message.layout if message.HasField("layout") else None,
        inherited=frozenset(
            enum_from_number(PolicySetting, number, "policy setting")
            for number in message.inherited
        ),
        untiered_retention_ms=_given(message, "untiered_retention_ms"),
        untiered_retention_bytes=_given(message, "untiered_retention_bytes"),
        unknown_fields=unknown_fields(message),
    )


def _given(message: pb.TopicPolicyChanged, name: str) -> int | None:
    value: int = getattr(message, name)
    return value if message.HasField(name) else None


def _managers_or_own(message: pb.TopicPolicyChanged, name: str) -> int:
    value = _given(message, name)
    return AS_MANAGERS_SETTING if value is None else value
