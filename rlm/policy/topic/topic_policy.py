"""Builds a topic's policy from flags, its current policy and its Kafka configurations. Pure.

This module limits the contents of a policy, and the topics that may have one.
rlm.policy.topic.policy_values checks combinations of values. rlm.topics.enable activates a policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any
from uuid import UUID

from rlm.facts.topic_configs import (
    CLEANUP_POLICY,
    MESSAGE_FORMAT_VERSION,
    REMOTE_STORAGE_ENABLE,
    RETENTION_BYTES,
    RETENTION_MS,
    TopicConfigs,
)
from rlm.policy.topic.levels import resolved
from rlm.policy.topic.policy_values import (
    FileDefaults,
    check_layout,
    check_limits,
    check_stream_buffer,
    check_values,
)
from rlmm.events.policy import (
    AS_LOCAL_RETENTION,
    AS_MANAGERS_SETTING,
    UNLIMITED,
    CopyLagSince,
    OriginalConfig,
    OutagePolicy,
    PolicySetting,
    PolicyState,
    TopicPolicy,
)
from rlmm.events.policy_level import DEFAULT_LEVEL, PolicyLevel
from rsm.segment.errors import InvalidConfigError
from rsm.segment.offload_settings import OffloadMode

RETENTION_CONFIGS = (RETENTION_MS, RETENTION_BYTES)

# The names come from org.apache.kafka.common.internals.Topic and from Kafka's tiered storage.
INTERNAL_TOPICS = frozenset(
    {
        "__cluster_metadata",
        "__consumer_offsets",
        "__remote_log_metadata",
        "__share_group_state",
        "__transaction_state",
    }
)

RETENTIONS = {
    PolicySetting.RETENTION_MS: RETENTION_MS,
    PolicySetting.RETENTION_BYTES: RETENTION_BYTES,
}
"""Kafka's names of the settings that a topic may have before it is tiered."""

_WITH_MANAGERS_VALUE = frozenset(
    {
        PolicySetting.LOCAL_DELETION_LAG_MS,
        PolicySetting.OFFLOAD_SEGMENT_MAX_BYTES,
        PolicySetting.OFFLOAD_SEGMENT_ROLLOVER_MS,
    }
)
_STATES_WITH_ORIGINALS = frozenset({PolicyState.ENABLING, PolicyState.ACTIVE})


class OffloadModeFlag(Enum):
    """Represents a user's choice of the offload mode; INHERIT leaves it to the next level."""

    SEGMENT = "segment"
    STREAM = "stream"
    INHERIT = "inherit"

    @property
    def mode(self) -> OffloadMode | None:
        return None if self is OffloadModeFlag.INHERIT else OffloadMode[self.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFlags:
    """Represents a user's values; None keeps the topic's present value.

    A copy lag of 0 copies at once, even if the other lag is higher. So if the user gives only one
    lag, which is not 0, and the topic's other lag is 0, the other lag becomes -1. The next policy
    level decides the settings in `inherit`, and each setting whose value refers to the managers.
    """

    retention_ms: int | None = None
    retention_bytes: int | None = None
    local_retention_ms: int | None = None
    local_retention_bytes: int | None = None
    copy_lag_ms: int | None = None
    copy_lag_bytes: int | None = None
    outage_policy: OutagePolicy | None = None
    local_deletion_lag_ms: int | None = None
    copy_lag_since: CopyLagSince | None = None
    offload_mode: OffloadModeFlag | None = None
    offload_segment_max_bytes: int | None = None
    offload_segment_rollover_ms: int | None = None
    layout: str | None = None
    inherit: frozenset[PolicySetting] = frozenset()

    @property
    def given(self) -> frozenset[PolicySetting]:
        """Return the settings that the user set for the topic itself."""
        named = {each for each in PolicySetting if getattr(self, each.field) is not None}
        return frozenset(named) - self.inherited

    @property
    def inherited(self) -> frozenset[PolicySetting]:
        """Return the settings that the user left to the next policy level."""
        by_value = {each for each in PolicySetting if self._refers_to_managers(each)}
        return self.inherit | by_value

    def _refers_to_managers(self, setting: PolicySetting) -> bool:
        if setting is PolicySetting.OFFLOAD_MODE:
            return self.offload_mode is OffloadModeFlag.INHERIT
        is_theirs: bool = getattr(self, setting.field) == AS_MANAGERS_SETTING
        return is_theirs and setting in _WITH_MANAGERS_VALUE

    def copy_lags(self, base: TopicPolicy) -> tuple[int, int]:
        """Return the lags in ms and bytes that these flags give a topic with the policy `base`."""
        lag_ms = _or(self.copy_lag_ms, base.copy_lag_ms)
        lag_bytes = _or(self.copy_lag_bytes, base.copy_lag_bytes)
        if self.copy_lag_ms and self.copy_lag_bytes is None:
            lag_bytes = lag_bytes or AS_LOCAL_RETENTION
        if self.copy_lag_bytes and self.copy_lag_ms is None:
            lag_ms = lag_ms or AS_LOCAL_RETENTION
        return lag_ms, lag_bytes


def enabling_policy(
    *,
    topic: str,
    topic_id: UUID,
    current: TopicPolicy | None,
    flags: PolicyFlags,
    configs: TopicConfigs,
    managers: FileDefaults,
    levels: Sequence[PolicyLevel] = (),
) -> TopicPolicy:
    """Return the ENABLING policy that `flags` request, with the originals to restore later.

    `current` is the policy of this topic id; if it is None, `configs` must contain the topic's own
    retention (rlm.topics.lost_policy). `managers` gives what neither the topic nor a level sets.
    `levels` are all policy levels: a new policy inherits what `flags` leave open, except the
    topic's own total retention. If no level gives a total retention, the effective one in `configs`
    applies.
    Raises InvalidConfigError if the values contradict each other, or if managers cannot apply them.
    """
    base = new_policy(topic, topic_id, configs) if current is None else current
    known = _known_originals(current, configs)
    if known is None:
        base = replace(
            base,
            originals=_overrides(configs),
            untiered_retention_ms=configs.retention_ms,
            untiered_retention_bytes=configs.retention_bytes,
        )
    else:
        base = replace(base, originals=known)
    policy = replace(
        _with_flags(base, flags), topic=topic, state=PolicyState.ENABLING, delete_remote=False
    )
    policy = resolved(policy, levels, managers.values)
    check_values(policy, managers.offload)
    check_layout(policy, managers)
    check_stream_buffer(policy, managers, batch_max_bytes=configs.max_message_bytes)
    return policy


def _with_flags(base: TopicPolicy, flags: PolicyFlags) -> TopicPolicy:
    """Return the policy with the values of `flags`, before levels are resolved."""
    copy_lag_ms, copy_lag_bytes = flags.copy_lags(base)
    return replace(
        base,
        retention_ms=_or(flags.retention_ms, base.retention_ms),
        retention_bytes=_or(flags.retention_bytes, base.retention_bytes),
        local_retention_ms=_or(flags.local_retention_ms, base.local_retention_ms),
        local_retention_bytes=_or(flags.local_retention_bytes, base.local_retention_bytes),
        copy_lag_ms=copy_lag_ms,
        copy_lag_bytes=copy_lag_bytes,
        outage_policy=flags.outage_policy or base.outage_policy,
        copy_lag_since=flags.copy_lag_since or base.copy_lag_since,
        local_deletion_lag_ms=_or(flags.local_deletion_lag_ms, base.local_deletion_lag_ms),
        offload_mode=base.offload_mode if flags.offload_mode is None else flags.offload_mode.mode,
        offload_segment_max_bytes=_or(
            flags.offload_segment_max_bytes, base.offload_segment_max_bytes
        ),
        offload_segment_rollover_ms=_or(
            flags.offload_segment_rollover_ms, base.offload_segment_rollover_ms
        ),
        layout=flags.layout or base.layout,
        inherited=base.inherited - flags.given | flags.inherited,
    )


def changed_level(level: PolicyLevel, flags: PolicyFlags) -> PolicyLevel:
    """Return the level with the values of `flags`, and without those that `flags` inherit."""
    values: dict[str, Any] = {each.field: None for each in flags.inherited}
    for setting in flags.given:
        value = getattr(flags, setting.field)
        values[setting.field] = value.mode if isinstance(value, OffloadModeFlag) else value
    return replace(level, **values)


def check_level(level: PolicyLevel, managers: FileDefaults) -> None:
    """Raise InvalidConfigError with the values if the level contradicts itself.

    Checks the level for a topic of unlimited retention to which no other level applies.
    """
    name = level.pattern or "(default)"
    topic = TopicPolicy(
        topic=name,
        topic_id=UUID(int=0),
        state=PolicyState.ENABLING,
        retention_ms=UNLIMITED,
        retention_bytes=UNLIMITED,
        inherited=frozenset(PolicySetting),
    )
    policy = resolved(topic, (replace(level, pattern=DEFAULT_LEVEL),))
    check_values(policy, managers.offload)
    check_layout(policy, managers)


def lowered_retentions(before: TopicPolicy, after: TopicPolicy) -> tuple[PolicySetting, ...]:
    """Return the limits of total retention that a change lowers: managers then expire more."""
    return tuple(
        each
        for each in RETENTIONS
        if is_lower_limit(getattr(before, each.field), getattr(after, each.field))
    )


def is_lower_limit(before: int, after: int) -> bool:
    """Return whether a limit of retention becomes lower; -1 is no limit."""
    return after != UNLIMITED and (before == UNLIMITED or after < before)


def check_flags(flags: PolicyFlags, *, name: str) -> None:
    """Raise InvalidConfigError if the retentions and lags in `flags` contradict each other.

    Assumes that settings left open by `flags` cause no error.
    `name` is the topic or pattern, for messages.
    """
    any_topic = TopicPolicy(
        topic=name,
        topic_id=UUID(int=0),
        state=PolicyState.ENABLING,
        retention_ms=UNLIMITED,
        retention_bytes=UNLIMITED,
    )
    check_limits(_with_flags(any_topic, flags))


def new_policy(topic: str, topic_id: UUID, configs: TopicConfigs) -> TopicPolicy:
    """Return a topic's first policy: its own retention, and all other settings inherited."""
    own = {each for each, name in RETENTIONS.items() if configs.override(name) is not None}
    return TopicPolicy(
        topic=topic,
        topic_id=topic_id,
        state=PolicyState.ENABLING,
        retention_ms=configs.retention_ms,
        retention_bytes=configs.retention_bytes,
        inherited=frozenset(PolicySetting) - own,
    )


NOT_INTERNAL = "not an internal topic of Kafka"
_NOT_OWN = "not a topic of rlm itself"
_BEFORE_LEADER_EPOCHS = re.compile(r"0\.([0-9]|10)\b")


def check_tierable(configs: TopicConfigs, *, own_topics: Iterable[str]) -> None:
    """Raise InvalidConfigError with the rule if this topic must not be tiered.

    `own_topics` are the topics of `rlm`. Formats before Kafka 0.11 have no leader epochs, without
    which nothing shows whether a stored segment belongs to this log.
    """
    topic = configs.topic
    if topic in INTERNAL_TOPICS:
        raise not_tierable(topic, NOT_INTERNAL)
    if topic in frozenset(own_topics):
        raise not_tierable(topic, _NOT_OWN)
    reason = untierable_reason(configs) or _format_reason(configs)
    if reason is not None:
        raise not_tierable(topic, reason, advice="Change this setting of the topic first")


def not_tierable(
    topic: str, rule: str, *, advice: str = "Name another topic"
) -> InvalidConfigError:
    """Return the error for a topic that breaks a rule."""
    return InvalidConfigError("the topic cannot be tiered", topic=topic, rule=rule, advice=advice)


def untierable_reason(configs: TopicConfigs) -> str | None:
    """Return the setting that forbids tiering, with its value; None if none does.

    Compaction rewrites segments, a topic without `delete` cannot be trimmed, and a broker trims the
    topics that it tiers itself.
    """
    if configs.cleanup_policy != {"delete"}:
        found = ",".join(sorted(configs.cleanup_policy))
        return f"{CLEANUP_POLICY}={found}, must be delete"
    if configs.remote_storage_enable:
        return f"{REMOTE_STORAGE_ENABLE}=true, must be false"
    return None


def _format_reason(configs: TopicConfigs) -> str | None:
    """Return the setting if new batches have no leader epochs; else None.

    `untierable_reason` also checks tiered topics, and omits this setting: brokers since 3.0 may
    report a value that they ignore.
    """
    version = configs.message_format_version
    if version is None or not _BEFORE_LEADER_EPOCHS.match(version):
        return None
    return f"{MESSAGE_FORMAT_VERSION}={version}, must be 0.11.0 or later"


def deletes_nothing(configs: TopicConfigs) -> bool:
    """Return whether the broker's own retention is disabled: both effective limits are -1."""
    return configs.retention_ms == UNLIMITED and configs.retention_bytes == UNLIMITED


def retention_overrides(configs: TopicConfigs) -> Mapping[str, str | None]:
    """Return the topic's own retention; None for a limit without an override."""
    return {name: configs.override(name) for name in RETENTION_CONFIGS}


def are_all_lifted(overrides: Mapping[str, str | None]) -> bool:
    """Return whether all overrides are -1, the value that tiering sets."""
    return all(overrides.get(name) == str(UNLIMITED) for name in RETENTION_CONFIGS)


def _known_originals(
    current: TopicPolicy | None, configs: TopicConfigs
) -> tuple[OriginalConfig, ...] | None:
    """Return the recorded overrides to restore if `rlm` set the present values; else None.

    In DISABLING and DISABLED, `rlm` set the present values if all are still -1. Otherwise, the
    originals were restored, and the present values are the user's.
    """
    if current is None or not current.originals:
        return None
    is_lifted = are_all_lifted(retention_overrides(configs))
    return current.originals if is_lifted or current.state in _STATES_WITH_ORIGINALS else None


def _overrides(configs: TopicConfigs) -> tuple[OriginalConfig, ...]:
    """Return the topic's own retention as the originals of a policy."""
    overrides = retention_overrides(configs)
    return tuple(OriginalConfig(name=name, value=value) for name, value in overrides.items())


def _or(given: int | None, kept: int) -> int:
    return kept if given is None else given
