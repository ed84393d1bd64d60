"""Converts the configured limits into the settings of the gateway's parts."""

from __future__ import annotations

from rlm.config.load import Config
from rlm.gateway.listener.server import ServerLimits
from rlm.gateway.remote.fair_queue import ReadPermits
from rlm.gateway.remote.fetch_quota import FetchQuota, FetchQuotaSettings
from rlm.gateway.session.limits import SessionLimits
from rsm.segment.clock import Clock

_AUTHORIZATION_AGE_MS = 100


def session_limits(config: Config) -> SessionLimits:
    """Return the limits of one connection."""
    limits = config.gateway_limits
    age_ms = limits.authorization_age_ms
    return SessionLimits(
        request_bytes=config.gateway.request_max_bytes,
        gathered_request_bytes=limits.gathered_request_bytes,
        gathered_answer_bytes=limits.gathered_answer_bytes,
        fetch_max_bytes=limits.fetch_max_bytes,
        pipelined_count=limits.pipelined_request_count,
        remote_wait_ms=config.gateway.fetch_max_wait_ms,
        log_ends_age_ms=limits.log_ends_age_ms,
        cached_response_max_age_ms=_AUTHORIZATION_AGE_MS if age_ms < 0 else age_ms,
        logged_in_cached_response_max_age_ms=max(age_ms, 0),
    )


def server_limits(config: Config) -> ServerLimits:
    """Return the connection counts and timeouts of the server."""
    limits = config.gateway_limits
    return ServerLimits(
        connection_count=config.gateway.max_connections,
        connection_count_of_address=limits.connections_of_address,
        connect_timeout_ms=limits.connect_timeout_ms,
        handshake_timeout_ms=limits.connect_timeout_ms,
        progress_timeout_ms=limits.progress_timeout_ms,
        idle_ms=limits.connections_max_idle_ms,
    )


def read_permits(config: Config, clock: Clock) -> ReadPermits:
    """Return the permits for remote fetches, with the configured quota."""
    limits = config.gateway_limits
    settings = FetchQuotaSettings(
        bytes_per_second=limits.fetch_bytes_per_second,
        window_count=limits.fetch_quota_window_count,
        window_ms=limits.fetch_quota_window_seconds * 1_000,
    )
    return ReadPermits(
        quota=FetchQuota(settings, clock.monotonic_ms()),
        slot_count=config.gateway.reader_thread_count + limits.reader_pending_count,
        clock=clock,
    )
