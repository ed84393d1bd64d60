"""Builds a topic's tiering policy from flags, its current policy and its own settings. Pure.

This module decides what a policy may contain and which topics may have one. The combinations of
values are in rlm.policy.topic.policy_values. It must not know how a policy is activated:
rlm.topics.enable owns that order of effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from rlm.broker.topics.topic_configs import (
    CLEANUP_POLICY,
    REMOTE_STORAGE_ENABLE,
    RETENTION_BYTES,
    RETENTION_MS,
    TopicConfigs,
)
from rlm.policy.topic.policy_values import check_values
from rlmm.events.policy import (
    AS_LOCAL_RETENTION,
    UNLIMITED,
    CopyLagSince,
    OriginalConfig,
    OutagePolicy,
    PolicyState,
    TopicPolicy,
)
from rsm.segment.errors import InvalidConfigError

RETENTION_CONFIGS = (RETENTION_MS, RETENTION_BYTES)

# org.apache.kafka.common.internals.Topic, and the topic of Kafka's own tiered storage.
INTERNAL_TOPICS = frozenset(
    {
        "__cluster_metadata",
        "__consumer_offsets",
        "__remote_log_metadata",
        "__share_group_state",
        "__transaction_state",
    }
)

_ORIGINALS_IN_FORCE = frozenset({PolicyState.ENABLING, PolicyState.ACTIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFlags:
    """Represents a user's values; None keeps the present value of the topic.

    A copy lag of 0 copies at once, whatever the other lag is. So a lag that is given sets the other
    lag from 0 to -1, unless that one is given too.
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

    def copy_lags(self, base: TopicPolicy) -> tuple[int, int]:
        """Return the lags in ms and bytes that result from these flags over those of `base`."""
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
    recalled: tuple[OriginalConfig, ...] = (),
) -> TopicPolicy:
    """Return the ENABLING policy that `flags` request, with the originals to restore later.

    `current` is the policy of this topic id. `recalled` are originals stored elsewhere, in case it
    was lost. For a new policy, a total retention that is not given is the effective one of
    `configs`. Raises InvalidConfigError if the values contradict Kafka's rules.
    """
    if current is None:
        base = TopicPolicy(
            topic=topic,
            topic_id=topic_id,
            state=PolicyState.ENABLING,
            retention_ms=configs.retention_ms,
            retention_bytes=configs.retention_bytes,
        )
    else:
        base = current
    copy_lag_ms, copy_lag_bytes = flags.copy_lags(base)
    policy = replace(
        base,
        topic=topic,
        state=PolicyState.ENABLING,
        retention_ms=_or(flags.retention_ms, base.retention_ms),
        retention_bytes=_or(flags.retention_bytes, base.retention_bytes),
        local_retention_ms=_or(flags.local_retention_ms, base.local_retention_ms),
        local_retention_bytes=_or(flags.local_retention_bytes, base.local_retention_bytes),
        copy_lag_ms=copy_lag_ms,
        copy_lag_bytes=copy_lag_bytes,
        outage_policy=flags.outage_policy or base.outage_policy,
        copy_lag_since=flags.copy_lag_since or base.copy_lag_since,
        local_deletion_lag_ms=_or(flags.local_deletion_lag_ms, base.local_deletion_lag_ms),
        originals=_originals(current, configs, recalled),
        delete_remote=False,
    )
    check_values(policy)
    return policy


def check_tierable(configs: TopicConfigs, *, own_topics: Iterable[str]) -> None:
    """Raise InvalidConfigError with the rule if this topic must not be tiered.

    `own_topics` are the topics of `rlm`. `untierable_reason` checks the topic's settings.
    """
    topic = configs.topic
    if topic in INTERNAL_TOPICS:
        raise InvalidConfigError("an internal topic of Kafka is not tiered", topic=topic)
    if topic in frozenset(own_topics):
        raise InvalidConfigError("a topic of rlm itself is not tiered", topic=topic)
    reason = untierable_reason(configs)
    if reason is not None:
        raise InvalidConfigError("topic cannot be tiered", topic=topic, rule=reason)


def untierable_reason(configs: TopicConfigs) -> str | None:
    """Return the setting that forbids tiering, with its value; None if none does.

    The segments of a compacted log change, a topic without `delete` cannot be trimmed, and brokers
    trim the topics that they tier themselves.
    """
    if configs.cleanup_policy != {"delete"}:
        found = ",".join(sorted(configs.cleanup_policy))
        return f"{CLEANUP_POLICY}={found}, must be delete"
    if configs.remote_storage_enable:
        return f"{REMOTE_STORAGE_ENABLE}=true, must be false"
    return None


def deletes_nothing(configs: TopicConfigs) -> bool:
    """Return whether the broker's own retention is disabled: both effective limits are -1."""
    return configs.retention_ms == UNLIMITED and configs.retention_bytes == UNLIMITED


def retention_overrides(configs: TopicConfigs) -> Mapping[str, str | None]:
    """Return the topic's own retention; None for a limit without an override."""
    return {name: configs.override(name) for name in RETENTION_CONFIGS}


def are_all_lifted(overrides: Mapping[str, str | None]) -> bool:
    """Return whether these are the values that tiering sets: -1 for each."""
    return all(overrides.get(name) == str(UNLIMITED) for name in RETENTION_CONFIGS)


def _originals(
    current: TopicPolicy | None, configs: TopicConfigs, recalled: tuple[OriginalConfig, ...]
) -> tuple[OriginalConfig, ...]:
    """Return the overrides to restore: the recorded ones, if `rlm` set the present -1.

    After DISABLING or DISABLED, `rlm` set them if all overrides are still -1. Otherwise they were
    restored, and the present values are the user's.
    """
    overrides = retention_overrides(configs)
    if current is not None and current.originals:
        if are_all_lifted(overrides) or current.state in _ORIGINALS_IN_FORCE:
            return current.originals
    elif recalled and are_all_lifted(overrides):
        return recalled
    return tuple(OriginalConfig(name=name, value=value) for name, value in overrides.items())


def _or(given: int | None, kept: int) -> int:
    return kept if given is None else given
