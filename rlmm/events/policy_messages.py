"""Encodes and decodes topics' policies and pauses as protobuf messages. Pure."""

from __future__ import annotations

from uuid import UUID

from rlmm.events.values import (
    AS_MANAGERS_SETTING,
    CopyLagSince,
    OriginalConfig,
    OutagePolicy,
    PausableTask,
    PolicyState,
    TopicPaused,
    TopicPolicy,
)
from rlmm.proto import events_pb2 as pb
from rsm.segment.metadata_codec import enum_from_number, id_from_bytes
from rsm.segment.unknown_fields import restore_unknown_fields, unknown_fields


def policy_to_message(policy: TopicPolicy) -> pb.TopicPolicyChanged:
    """Encode a policy."""
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


def policy_from_message(message: pb.TopicPolicyChanged) -> TopicPolicy:
    """Decode a policy. CorruptError, UnsupportedError."""
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


def pause_to_message(event: TopicPaused) -> pb.TopicPaused:
    """Encode a topic's pauses."""
    message = pb.TopicPaused(
        topic=event.topic,
        topic_id=event.topic_id.bytes,
        tasks=[task.name for task in sorted(event.tasks, key=lambda each: each.value)],
    )
    restore_unknown_fields(message, event.unknown_fields)
    return message


def pause_from_message(event_id: UUID, message: pb.TopicPaused) -> TopicPaused:
    """Decode a topic's pauses. CorruptError, UnsupportedError."""
    tasks = (enum_from_number(PausableTask, number, "task") for number in message.tasks)
    return TopicPaused(
        event_id=event_id,
        topic=message.topic,
        topic_id=id_from_bytes(message.topic_id),
        tasks=frozenset(tasks),
        unknown_fields=unknown_fields(message),
    )
