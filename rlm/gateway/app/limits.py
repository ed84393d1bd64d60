"""Divides the configured limits among a gateway's processes, and converts them for its parts."""

from __future__ import annotations

from dataclasses import replace

from rlm.config.load import Config
from rlm.config.values import UNLIMITED_BYTES_PER_SECOND
from rlm.gateway.listener.server import ServerLimits
from rlm.gateway.remote.fair_queue import ReadPermits
from rlm.gateway.remote.fetch_quota import FetchQuota, FetchQuotaSettings
from rlm.gateway.session.session_state import SessionLimits
from rsm.segment.clock import Clock

_AUTHORIZATION_AGE_MS = 100


def share_of_worker(config: Config) -> Config:
    """Return the configuration of one of `gateway.workers` processes, with its share of limits.

    Shares are equal and rounded up; an unlimited rate stays unlimited. A process cannot use the
    unused share of another, so it can refuse a client while another has capacity left.
    """
    gateway, limits = config.gateway, config.gateway_limits
    count = gateway.worker_count

    def share(total: int) -> int:
        return (total + count - 1) // count

    def share_of_rate(bytes_per_second: int) -> int:
        if bytes_per_second == UNLIMITED_BYTES_PER_SECOND:
            return bytes_per_second
        return share(bytes_per_second)

    return replace(
        config,
        gateway=gateway.model_copy(
            update={
                "max_connections": share(gateway.max_connections),
                "reader_thread_count": share(gateway.reader_thread_count),
                "chunk_cache_bytes": share(gateway.chunk_cache_bytes),
                "chunk_cache_disk_bytes": share(gateway.chunk_cache_disk_bytes),
            }
        ),
        storage=config.storage.model_copy(
            update={"index_cache_bytes": share(config.storage.index_cache_bytes)}
        ),
        gateway_limits=limits.model_copy(
            update={
                "fetch_bytes_per_second": share_of_rate(limits.fetch_bytes_per_second),
                "reader_pending_count": share(limits.reader_pending_count),
                "connections_of_address": share(limits.connections_of_address),
            }
        ),
    )


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
    """Return the server's limits on connections, and its timeouts."""
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
    """Build the permits for remote fetches, with the configured quota."""
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
