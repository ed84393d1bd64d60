"""Kafka's error codes as our errors: what a caller can do next decides which.

The original code stays in the error's context as `error`, by name where it is known.
"""

from __future__ import annotations

from rlm.wire.error_codes import ErrorCode, error_name
from rsm.segment.errors import (
    FencedError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
    UnsupportedError,
)


class ForeignClusterError(InvalidConfigError):
    """What answers belongs to another cluster than our log dirs: it can never become right."""


class PartitionGoneError(NotFoundError):
    """The broker has no such partition, or not of this topic id: the topic is being deleted."""


_ERRORS: dict[int, tuple[type[TieredStorageError], str]] = {
    # Not ours to act on any more: another leader, or a newer epoch of it.
    ErrorCode.NOT_LEADER_OR_FOLLOWER: (FencedError, "this broker does not lead the partition"),
    ErrorCode.FENCED_LEADER_EPOCH: (FencedError, "the partition has a newer leader epoch"),
    # The broker lags behind what we heard elsewhere. Whatever was planned on it must not happen.
    ErrorCode.UNKNOWN_LEADER_EPOCH: (FencedError, "the broker does not know the leader epoch yet"),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (PartitionGoneError, "the broker has no such partition"),
    ErrorCode.UNKNOWN_TOPIC_ID: (PartitionGoneError, "the broker has no topic of this id"),
    ErrorCode.INCONSISTENT_TOPIC_ID: (PartitionGoneError, "the topic was created again"),
    # Above the high watermark, which may still move.
    ErrorCode.OFFSET_OUT_OF_RANGE: (RetriableError, "the log does not reach that offset"),
    # After an election, until the high watermark is known again.
    ErrorCode.OFFSET_NOT_AVAILABLE: (RetriableError, "the leader does not know its offsets yet"),
    ErrorCode.POLICY_VIOLATION: (UnsupportedError, "the topic's policy does not allow it"),
    ErrorCode.UNSUPPORTED_VERSION: (UnsupportedError, "the broker does not support it"),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (InvalidConfigError, "not a valid topic name"),
    ErrorCode.INVALID_CONFIG: (InvalidConfigError, "the broker does not take the setting"),
    # Rights may be granted while we run, so these are worth asking again.
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (RetriableError, "missing rights on the topic"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (RetriableError, "missing rights on the group"),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (RetriableError, "missing rights on the cluster"),
}


def error_of(error_code: int, **context: object) -> TieredStorageError:
    """The error that stands for a code; for one we know nothing of, a RetriableError."""
    kind, message = _ERRORS.get(error_code, (RetriableError, "the broker could not do it"))
    return kind(message, error=error_name(error_code), **context)
