"""Defines the disconnect causes, and the error that carries one."""

from __future__ import annotations

from enum import Enum


class DisconnectCause(Enum):
    """Represents why a connection was closed. The first two causes are normal: a peer closed it."""

    CLIENT_LEFT = "client_left"
    BROKER_CLOSED = "broker_closed"
    BROKER_UNREACHABLE = "broker_unreachable"
    MALFORMED_REQUEST = "malformed_request"
    MALFORMED_ANSWER = "malformed_answer"
    UNKNOWN_API = "unknown_api"
    UNOFFERED_VERSION = "unoffered_version"
    NOT_LOGGED_IN = "not_logged_in"
    REPLICA_FETCH = "replica_fetch"
    REQUEST_TOO_LARGE = "request_too_large"
    ANSWER_TOO_LARGE = "answer_too_large"
    TLS_HANDSHAKE_FAILED = "tls_handshake_failed"
    TLS_HANDSHAKE_TIMEOUT = "tls_handshake_timeout"
    TOO_MANY_CONNECTIONS = "too_many_connections"
    TOO_MANY_CONNECTIONS_OF_ADDRESS = "too_many_connections_of_address"
    NO_REQUEST = "no_request"
    SLOW_REQUEST = "slow_request"
    ANSWER_NOT_TAKEN = "answer_not_taken"
    IDLE = "idle"
    METADATA_NOT_READY = "metadata_not_ready"
    UNUSABLE_ADDRESS = "unusable_address"
    LED_ELSEWHERE = "led_elsewhere"
    STOPPING = "stopping"
    INTERNAL_ERROR = "internal_error"


class ConnectionRefusedByGatewayError(Exception):
    """Raised if the bytes of a connection make the gateway close it. Other connections continue."""

    def __init__(self, reason: DisconnectCause, detail: str = "") -> None:
        super().__init__(f"{reason.value} {detail}".rstrip())
        self.reason = reason
        self.detail = detail
