"""Divides the configured limits among the processes of a gateway."""

from __future__ import annotations

from dataclasses import replace

from rlm.config.load import Config


def share_of_worker(config: Config) -> Config:
    """Return the configuration of one of `gateway.workers` processes, with its share of limits.

    Shares are equal and rounded up. Processes do not share unused limits, so one process can
    refuse a client while another has capacity left.
    """
    gateway, limits = config.gateway, config.gateway_limits
    count = gateway.worker_count

    def share(total: int) -> int:
        return (total + count - 1) // count

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
                "fetch_bytes_per_second": share(limits.fetch_bytes_per_second),
                "reader_pending_count": share(limits.reader_pending_count),
                "connections_of_address": share(limits.connections_of_address),
            }
        ),
    )
