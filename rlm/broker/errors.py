"""Maps Kafka's error codes to errors, grouped by what a caller can do next.

`error` in the context of an error is the name of the code, or its number if the name is unknown.
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
    """The cluster that answered does not have the expected id; no retry can succeed."""


class PartitionGoneError(NotFoundError):
    """The broker has no such topic or partition, usually because the topic was deleted."""


class MissingRightsError(RetriableError):
    """The broker refused the request: the principal has no ACL for it."""


_ERRORS: dict[int, tuple[type[TieredStorageError], str]] = {
    # The caller's view is old: another broker leads, or the epoch is newer.
    ErrorCode.NOT_LEADER_OR_FOLLOWER: (FencedError, "this broker does not lead the partition"),
    ErrorCode.FENCED_LEADER_EPOCH: (FencedError, "the partition has a newer leader epoch"),
    # The broker lags behind the caller's epoch, so the plan must not run.
    ErrorCode.UNKNOWN_LEADER_EPOCH: (FencedError, "the broker does not know the leader epoch yet"),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        PartitionGoneError,
        "the broker has no such topic or partition",
    ),
    ErrorCode.UNKNOWN_TOPIC_ID: (PartitionGoneError, "the broker has no topic of this id"),
    ErrorCode.INCONSISTENT_TOPIC_ID: (
        PartitionGoneError,
        "the topic was deleted and created again",
    ),
    # The offset is above the high watermark, which may still advance.
    ErrorCode.OFFSET_OUT_OF_RANGE: (RetriableError, "the log does not reach that offset"),
    # The leader returns this after an election, until it knows the high watermark again.
    ErrorCode.OFFSET_NOT_AVAILABLE: (RetriableError, "the leader does not know its offsets yet"),
    ErrorCode.POLICY_VIOLATION: (
        UnsupportedError,
        "the broker's policy or the topic's cleanup.policy refuses the request",
    ),
    ErrorCode.UNSUPPORTED_VERSION: (UnsupportedError, "the broker does not support this request"),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (InvalidConfigError, "the topic name is invalid"),
    ErrorCode.INVALID_CONFIG: (InvalidConfigError, "the broker rejects the setting"),
    # An operator may grant rights at any time, so a retry can succeed.
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (
        MissingRightsError,
        "the principal lacks rights on the topic",
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (
        MissingRightsError,
        "the principal lacks rights on the group",
    ),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (
        MissingRightsError,
        "the principal lacks rights on the cluster",
    ),
}

_ACLS = "Grant the principal of this client the ACLs that its role needs: deploy/kafka/acls.sh"


def error_of(error_code: int, **context: object) -> TieredStorageError:
    """Return the error for a code; a RetriableError if the code has no entry."""
    kind, message = _ERRORS.get(error_code, (RetriableError, "the broker returned an error"))
    if kind is MissingRightsError:
        context.setdefault("advice", _ACLS)
    return kind(message, error=error_name(error_code), **context)
