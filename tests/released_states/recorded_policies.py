"""Policies of topics and of patterns, with each value of each field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import UUID

from rlmm.events.policy import (
    CopyLagSince,
    OriginalConfig,
    OutagePolicy,
    PolicySetting,
    PolicyState,
    TopicPolicy,
    TopicPolicyChanged,
)
from rlmm.events.policy_level import DEFAULT_LEVEL, PolicyLevel, PolicyLevelSet
from rsm.segment.offload_settings import OffloadMode

_HOUR_MS = 3_600_000


def policies(
    orders_id: UUID, clicks_id: UUID, new_id: Callable[[], UUID]
) -> tuple[TopicPolicyChanged, ...]:
    """Return policies with each state, and with each value of each field."""
    keep = TopicPolicy(
        topic="orders",
        topic_id=orders_id,
        state=PolicyState.ACTIVE,
        retention_ms=-1,
        retention_bytes=-1,
        local_retention_ms=0,
        originals=(
            OriginalConfig(name="retention.bytes", value=None),
            OriginalConfig(name="retention.ms", value="604800000"),
        ),
    )
    expire = replace(keep, topic="clicks", topic_id=clicks_id, retention_ms=_HOUR_MS, originals=())
    others = (
        replace(
            keep,
            topic=f"archive-{state.name.lower()}",
            topic_id=UUID(int=0xA0 + state.value, version=4),
            state=state,
            retention_ms=7 * 24 * _HOUR_MS,
            retention_bytes=1 << 40,
            local_retention_ms=-2,
            local_retention_bytes=1 << 30,
            delete_remote=state is PolicyState.DISABLED,
            copy_lag_ms=-1,
            copy_lag_bytes=1 << 20,
            outage_policy=OutagePolicy.SHED_OLDEST,
            copy_lag_since=CopyLagSince.ROLL,
            local_deletion_lag_ms=4 * _HOUR_MS,
            offload_mode=OffloadMode.STREAM if state.value % 2 else OffloadMode.SEGMENT,
            offload_segment_max_bytes=1 << 26,
            offload_segment_rollover_ms=60_000,
            layout="block_v1",
            inherited=frozenset(PolicySetting),
            untiered_retention_ms=_HOUR_MS,
            untiered_retention_bytes=-1,
        )
        for state in PolicyState
    )
    return tuple(
        TopicPolicyChanged(event_id=new_id(), policy=policy) for policy in (keep, expire, *others)
    )


def streaming_policy(topic: str, topic_id: UUID) -> TopicPolicy:
    """Return the policy of a streamed topic that keeps all its data."""
    return TopicPolicy(
        topic=topic,
        topic_id=topic_id,
        state=PolicyState.ACTIVE,
        retention_ms=-1,
        retention_bytes=-1,
        local_retention_ms=0,
        offload_mode=OffloadMode.STREAM,
        offload_segment_rollover_ms=10_000,
    )


def policy_levels(new_id: Callable[[], UUID]) -> Iterator[PolicyLevelSet]:
    """Yield the default of all topics, and patterns with each value of each field."""
    levels = (
        PolicyLevel(pattern=DEFAULT_LEVEL, retention_ms=7 * 24 * _HOUR_MS),
        PolicyLevel(
            pattern="archive-*",
            retention_ms=-1,
            retention_bytes=1 << 40,
            local_retention_ms=_HOUR_MS,
            local_retention_bytes=-2,
            copy_lag_ms=60_000,
            copy_lag_bytes=-1,
            copy_lag_since=CopyLagSince.ROLL,
            outage_policy=OutagePolicy.SHED_OLDEST,
            local_deletion_lag_ms=0,
            offload_mode=OffloadMode.STREAM,
            offload_segment_max_bytes=1 << 26,
            offload_segment_rollover_ms=60_000,
            layout="block_v2",
        ),
        PolicyLevel(
            pattern="archive-200?",
            copy_lag_since=CopyLagSince.NEWEST_RECORD,
            outage_policy=OutagePolicy.HOLD,
            offload_mode=OffloadMode.SEGMENT,
        ),
    )
    for level in levels:
        yield PolicyLevelSet(event_id=new_id(), level=level)
