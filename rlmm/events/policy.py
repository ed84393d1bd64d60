"""How a topic is tiered. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import ClusterFamily
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind
from rsm.segment.metadata_codec import enum_from_number, id_from_bytes
from rsm.segment.unknown_fields import restore_unknown_fields, unknown_fields

UNLIMITED = -1
AS_TOTAL_RETENTION = -2
AS_LOCAL_RETENTION = -1
AS_MANAGERS_SETTING = -1


class OutagePolicy(Enum):
    """What to do when the store is unavailable and the broker's disk fills."""

    HOLD = 1
    SHED_OLDEST = 2


class PolicyState(Enum):
    """The state of a topic's tiering. Trims need ACTIVE; copies need ACTIVE or DISABLING."""

    ENABLING = 1
    ACTIVE = 2
    DISABLING = 3
    DISABLED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalConfig:
    """A topic config as it was before tiering; `value` None: the topic had no override."""

    name: str
    value: str | None


class CopyLagSince(Enum):
    """The start of a copy lag in time."""

    NEWEST_RECORD = 1  # the segment's newest record (KIP-1241)
    ROLL = 2  # when the broker rolled the segment (PIP-17's offloadTimeInMinutes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPolicy:
    """How one topic is tiered; -1 is unlimited, and local retention -2 is "as total" (KIP-405).

    Copy lags are KIP-1241's: 0 copies at once, -1 is "as local retention". The local deletion lag
    (PIP-17) is how long stored data stays local; -1 is each manager's setting. `unknown_fields` are
    a newer version's additional fields, in protobuf.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPolicyChanged(Event):
    """The policy of one topic id; the last record wins."""

    policy: TopicPolicy


class PolicyFamily(ClusterFamily[TopicPolicyChanged, pb.TopicPolicyChanged]):
    """Policies of topic ids."""

    event_type = TopicPolicyChanged
    kind = RecordKind.POLICY
    field = "topic_policy_changed"

    def to_message(self, event: TopicPolicyChanged) -> pb.TopicPolicyChanged:
        return _to_message(event.policy)

    def from_message(self, event_id: UUID, message: pb.TopicPolicyChanged) -> TopicPolicyChanged:
        return TopicPolicyChanged(event_id=event_id, policy=_from_message(message))

    def record_key(self, event: TopicPolicyChanged) -> RecordKey:
        return RecordKey(kind=self.kind, subject=event.policy.topic_id.bytes)

    def topic_of(self, event: TopicPolicyChanged) -> str | None:
        return event.policy.topic


def _to_message(policy: TopicPolicy) -> pb.TopicPolicyChanged:
    holds = policy.outage_policy is OutagePolicy.HOLD
    as_managers_setting = policy.local_deletion_lag_ms == AS_MANAGERS_SETTING
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
        local_deletion_lag_ms=None if as_managers_setting else policy.local_deletion_lag_ms,
        copy_lag_since=None if by_record else policy.copy_lag_since.name,
    )
    restore_unknown_fields(message, policy.unknown_fields)
    return message


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
        local_deletion_lag_ms=(
            message.local_deletion_lag_ms
            if message.HasField("local_deletion_lag_ms")
            else AS_MANAGERS_SETTING
        ),
        unknown_fields=unknown_fields(message),
    )
