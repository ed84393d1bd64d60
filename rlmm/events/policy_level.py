"""Defines settings for all topics, or for the topics whose names match a pattern. Pure.

A level decides nothing by itself. Managers and commands resolve levels into the policies of topics
(rlm/policy/topic/levels.py), and decisions about partitions read only these policies. So a process
that does not know this event can safely ignore it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import ClusterFamily
from rlmm.events.policy import CopyLagSince, OutagePolicy, PolicySetting
from rlmm.events.rows import ClusterReader, RecordRemover
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind
from rsm.segment.metadata_codec import enum_from_number
from rsm.segment.offload_settings import OffloadMode
from rsm.segment.proto.unknown_fields import restore_unknown_fields, unknown_fields

DEFAULT_LEVEL = ""
"""The pattern of the default level, which applies to all topics and tiers none."""

SettingValue = int | str | CopyLagSince | OutagePolicy | OffloadMode


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLevel:
    """Represents the settings of topics whose names match `pattern`.

    In a pattern, `*` matches any characters and `?` one. A setting that is None comes from the next
    level. Other values are as in TopicPolicy, but cannot refer to the managers' settings.
    `unknown_fields` contains the additional fields of a newer version, as protobuf.
    """

    pattern: str
    retention_ms: int | None = None
    retention_bytes: int | None = None
    local_retention_ms: int | None = None
    local_retention_bytes: int | None = None
    copy_lag_ms: int | None = None
    copy_lag_bytes: int | None = None
    copy_lag_since: CopyLagSince | None = None
    outage_policy: OutagePolicy | None = None
    local_deletion_lag_ms: int | None = None
    offload_mode: OffloadMode | None = None
    offload_segment_max_bytes: int | None = None
    offload_segment_rollover_ms: int | None = None
    layout: str | None = None
    unknown_fields: bytes = b""

    @property
    def values(self) -> Mapping[PolicySetting, SettingValue]:
        """Return the settings that this level gives."""
        found = {each: getattr(self, each.field) for each in PolicySetting}
        return {setting: value for setting, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLevelSet(Event):
    """Represents a whole policy level; the last record wins, and a tombstone removes it."""

    level: PolicyLevel


class PolicyLevelFamily(ClusterFamily[PolicyLevelSet, pb.PolicyLevelSet, PolicyLevel]):
    """Defines the family of policy levels, including the default level."""

    event_type = PolicyLevelSet
    kind = RecordKind.POLICY_LEVEL
    field = "policy_level_set"
    row_prefix = b"level"

    def to_message(self, event: PolicyLevelSet) -> pb.PolicyLevelSet:
        level = event.level
        message = pb.PolicyLevelSet(
            pattern=level.pattern,
            retention_ms=level.retention_ms,
            retention_bytes=level.retention_bytes,
            local_retention_ms=level.local_retention_ms,
            local_retention_bytes=level.local_retention_bytes,
            copy_lag_ms=level.copy_lag_ms,
            copy_lag_bytes=level.copy_lag_bytes,
            copy_lag_since=None if level.copy_lag_since is None else level.copy_lag_since.name,
            outage_policy=None if level.outage_policy is None else level.outage_policy.name,
            local_deletion_lag_ms=level.local_deletion_lag_ms,
            offload_mode=None if level.offload_mode is None else level.offload_mode.name,
            offload_segment_max_bytes=level.offload_segment_max_bytes,
            offload_segment_rollover_ms=level.offload_segment_rollover_ms,
            layout=level.layout,
        )
        restore_unknown_fields(message, level.unknown_fields)
        return message

    def from_message(self, event_id: UUID, message: pb.PolicyLevelSet) -> PolicyLevelSet:
        since, outage, mode = message.copy_lag_since, message.outage_policy, message.offload_mode
        level = PolicyLevel(
            pattern=message.pattern,
            retention_ms=_given(message, "retention_ms"),
            retention_bytes=_given(message, "retention_bytes"),
            local_retention_ms=_given(message, "local_retention_ms"),
            local_retention_bytes=_given(message, "local_retention_bytes"),
            copy_lag_ms=_given(message, "copy_lag_ms"),
            copy_lag_bytes=_given(message, "copy_lag_bytes"),
            copy_lag_since=(
                enum_from_number(CopyLagSince, since, "start of a copy lag") if since else None
            ),
            outage_policy=(
                enum_from_number(OutagePolicy, outage, "outage policy") if outage else None
            ),
            local_deletion_lag_ms=_given(message, "local_deletion_lag_ms"),
            offload_mode=enum_from_number(OffloadMode, mode, "offload mode") if mode else None,
            offload_segment_max_bytes=_given(message, "offload_segment_max_bytes"),
            offload_segment_rollover_ms=_given(message, "offload_segment_rollover_ms"),
            layout=message.layout if message.HasField("layout") else None,
            unknown_fields=unknown_fields(message),
        )
        return PolicyLevelSet(event_id=event_id, level=level)

    def record_key(self, event: PolicyLevelSet) -> RecordKey:
        return RecordKey(kind=self.kind, subject=_subject(event.level.pattern))

    def value_of(self, event: PolicyLevelSet, append_time_ms: int) -> PolicyLevel:
        return event.level


POLICY_LEVELS = PolicyLevelFamily()


def policy_levels(metadata: ClusterReader) -> tuple[PolicyLevel, ...]:
    """Return the newest policy level of each pattern, by ascending pattern, the default first."""
    levels = metadata.cluster_values(POLICY_LEVELS)
    return tuple(sorted(levels, key=lambda each: each.pattern))


def remove_policy_level(metadata: RecordRemover, pattern: str) -> bool:
    """Write the tombstone of a pattern's policy level; return whether the level existed.

    Any process may call this. Returns after this process has applied the tombstone. Raises
    RetriableError if the write fails or applying the tombstone takes too long.
    """
    subject = _subject(pattern)
    if metadata.cluster_value(POLICY_LEVELS, subject) is None:
        return False
    metadata.remove_record(RecordKey(kind=POLICY_LEVELS.kind, subject=subject), waits=True)
    return True


def _subject(pattern: str) -> bytes:
    return sha256(pattern.encode()).digest()[:16]


def _given(message: pb.PolicyLevelSet, name: str) -> int | None:
    value: int = getattr(message, name)
    return value if message.HasField(name) else None
