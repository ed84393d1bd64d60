"""Names the Kafka error codes that `rlm` distinguishes; other codes stay numbers.

Source: org.apache.kafka.common.protocol.Errors.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """Represents the error codes that `rlm` distinguishes."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    REPLICA_NOT_AVAILABLE = 9
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    SECURITY_DISABLED = 54
    KAFKA_STORAGE_ERROR = 56
    SASL_AUTHENTICATION_FAILED = 58
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    OFFSET_NOT_AVAILABLE = 78
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103


_FIRST_FETCH_WITH_STORAGE_ERROR = 6


def in_fetch(code: int, version: int) -> int:
    """Return the code that brokers send for `code` in a version of Fetch.

    Old clients do not know KAFKA_STORAGE_ERROR. They get NOT_LEADER_OR_FOLLOWER, which they also
    retry. Source: KafkaApis.handleFetchRequest.
    """
    if code == ErrorCode.KAFKA_STORAGE_ERROR and version < _FIRST_FETCH_WITH_STORAGE_ERROR:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return code


def error_name(code: int) -> str:
    """Return the code's name; its number as text if the name is unknown."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
