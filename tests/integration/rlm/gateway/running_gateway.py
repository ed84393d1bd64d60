"""Runs a gateway in this process, for a real broker and a host's metadata topic and store."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from uuid import uuid4

from rlm.config.values import HostPort
from rlm.gateway.app.security import GatewayTls
from rlm.gateway.endpoints.endpoint import Endpoint
from rlm.gateway.endpoints.sni_routing import ServerNames
from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.remote_log_bounds import MetadataLogBoundsView
from rlm.gateway.listener.server import GatewayParts, GatewayServer, ServerLimits
from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlm.gateway.model.context import GatewayContext, QuerySettings
from rlm.gateway.model.counters import GatewayCounts
from rlm.gateway.model.tiered_topics import tiered_topics
from rlm.gateway.relay.rewrite_pools import RewritePools
from rlm.gateway.remote.cached_segments import CachedSegments
from rlm.gateway.remote.fair_queue import ReadPermits
from rlm.gateway.remote.fetch_quota import FetchQuota, FetchQuotaSettings
from rlm.gateway.remote.fetcher import RemoteFetcher
from rlm.gateway.remote.remote_partition_reader import RemotePartitionReader
from rlm.gateway.session.session_state import SessionLimits, SessionParts
from rlm.remote_read.anomalies import ReadAnomalies
from rlm.remote_read.segment_parts import SegmentPart
from rlm.remote_read.timestamps import RemoteTimestamps
from rlm.worker.store_access import open_storage_manager
from rlmm.events.policy import topic_policies
from rlmm.spi import RemoteLogMetadataManager
from rsm.cache.chunk_cache import ChunkCache, ChunkCacheSettings
from rsm.spi import RemoteStorageManager
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.system_clock import SystemClock
from tests.e2e.broker_host import BrokerHost
from tests.services.kafka import KafkaBroker

PLAIN_TEXT = GatewayTls(towards_clients=None, towards_brokers=None)
_START_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGateway:
    """A running gateway, as a test uses it."""

    bootstrap_servers: str
    counts: GatewayCounts
    permits: ReadPermits
    local_starts: LocalStarts
    anomalies: ReadAnomalies
    cache: ChunkCache[SegmentPart]
    metadata: RemoteLogMetadataManager


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tier:
    fetcher: RemoteFetcher
    timestamps: RemoteTimestamps
    anomalies: ReadAnomalies
    cache: ChunkCache[SegmentPart]


@contextmanager
def running_gateway(
    host: BrokerHost,
    *,
    broker: KafkaBroker | None = None,
    storage: ChunkStorage | None = None,
    session_limits: SessionLimits | None = None,
    server_limits: ServerLimits | None = None,
    quota: FetchQuotaSettings | None = None,
    slot_count: int = 110,
    list_offsets_timeout_ms: int = 8_000,
    cache_bytes: int = 256 << 20,
    upstream_host: str = "127.0.0.1",
    upstream_port: int | None = None,
    tls: GatewayTls = PLAIN_TEXT,
    names: ServerNames | None = None,
) -> Iterator[RunningGateway]:
    """Serve until the block ends.

    `storage` replaces the host's store. `upstream_port` selects another listener of the broker,
    which must match `tls`. With `names`, clients reach the broker only by its own server name.
    """
    broker = broker or host.cluster.broker
    own = storage is None
    storage = storage or FilesystemChunkStorage(host.store)
    with host.metadata() as metadata, _pools() as pools:
        query_settings = pools.query_settings(list_offsets_timeout_ms)
        manager = open_storage_manager(host.config.storage, storage)
        tier = _tier(metadata, manager, pools.store, cache_bytes)
        listener = socket.create_server(("127.0.0.1", 0))
        address = HostPort(host="127.0.0.1", port=listener.getsockname()[1])
        session = SessionParts(
            context=lambda: _context(broker.node_id, address, metadata, tier, query_settings),
            view=MetadataLogBoundsView(metadata, SystemClock()),
            local_starts=LocalStarts(),
            clock=SystemClock(),
            limits=session_limits or SessionLimits(),
        )
        parts = GatewayParts(
            session=session,
            tier=RemotePartitionReader(metadata, tier.fetcher),
            pool=pools.fetch_starts,
            rewrite_pools=pools.rewrites,
            permits=_permits(quota or FetchQuotaSettings(), slot_count),
            is_under_memory_pressure=lambda: tier.cache.state().waiting_count > 0,
            client_tls=tls.towards_clients,
            upstream_tls=tls.towards_brokers,
            limits=server_limits or ServerLimits(),
        )
        there = (HostPort(host=upstream_host, port=upstream_port or broker.port),)
        endpoint = _endpoint(listener, there, names, broker.node_id)
        with _serving(GatewayServer(parts), endpoint):
            yield _seen(str(address), parts, tier, metadata)
        if own:
            storage.close()


def _seen(
    address: str, parts: GatewayParts, tier: _Tier, metadata: RemoteLogMetadataManager
) -> RunningGateway:
    return RunningGateway(
        bootstrap_servers=address,
        counts=parts.counts,
        permits=parts.permits,
        local_starts=parts.session.local_starts,
        anomalies=tier.anomalies,
        cache=tier.cache,
        metadata=metadata,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pools:
    """Pools like those of a gateway process."""

    store: ThreadPoolExecutor
    fetch_starts: ThreadPoolExecutor
    rewrites: RewritePools
    rewrite_reads: ThreadPoolExecutor
    rewrite_writes: ThreadPoolExecutor

    def query_settings(self, timeout_ms: int) -> QuerySettings:
        return QuerySettings(
            store=self.rewrite_reads,
            topic=self.rewrite_writes,
            clock=SystemClock(),
            timeout_ms=timeout_ms,
        )


@contextmanager
def _pools() -> Iterator[_Pools]:
    with ExitStack() as stack:

        def pool() -> ThreadPoolExecutor:
            return stack.enter_context(ThreadPoolExecutor(8))

        rewrites = RewritePools(store=pool(), others=pool())
        yield _Pools(
            store=pool(),
            fetch_starts=pool(),
            rewrites=rewrites,
            rewrite_reads=pool(),
            rewrite_writes=pool(),
        )


def _endpoint(
    listener: socket.socket,
    there: Sequence[HostPort],
    names: ServerNames | None,
    node_id: int,
) -> Endpoint:
    if names is None:
        return Endpoint(name="broker", listener=listener, upstreams=lambda: there)
    return Endpoint(
        name="named",
        listener=listener,
        upstreams=tuple,
        upstreams_of_name=lambda name: there if names.node_of(name) == node_id else (),
    )


def _tier(
    metadata: RemoteLogMetadataManager,
    storage: RemoteStorageManager,
    reads: ThreadPoolExecutor,
    cache_bytes: int,
) -> _Tier:
    anomalies = ReadAnomalies(SystemClock())
    cache = ChunkCache[SegmentPart](
        executor=reads, clock=SystemClock(), settings=ChunkCacheSettings(budget_bytes=cache_bytes)
    )
    fetcher = RemoteFetcher(
        metadata=metadata,
        storage=storage,
        cache=cache,
        anomalies=anomalies,
        clock=SystemClock(),
    )
    segments = CachedSegments(fetcher=fetcher, cache=cache, storage=storage)
    return _Tier(
        fetcher=fetcher,
        timestamps=RemoteTimestamps(metadata, segments),
        anomalies=anomalies,
        cache=cache,
    )


def _context(
    node_id: int,
    address: HostPort,
    metadata: RemoteLogMetadataManager,
    tier: _Tier,
    query_settings: QuerySettings,
) -> GatewayContext:
    return GatewayContext(
        topology=GatewayTopology(live={node_id: address}),
        topics=tiered_topics(topic_policies(metadata), {}),
        metadata=metadata,
        timestamps=tier.timestamps,
        query_settings=query_settings,
        new_id=uuid4,
    )


def _permits(quota: FetchQuotaSettings, slot_count: int) -> ReadPermits:
    clock = SystemClock()
    return ReadPermits(
        quota=FetchQuota(quota, clock.monotonic_ms()), slot_count=slot_count, clock=clock
    )


@contextmanager
def _serving(server: GatewayServer, endpoint: Endpoint) -> Iterator[None]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="gateway")
    thread.start()
    try:
        loop.call_soon_threadsafe(server.start)
        asyncio.run_coroutine_threadsafe(server.open(endpoint), loop).result(_START_DEADLINE_S)
        yield
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(_START_DEADLINE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_START_DEADLINE_S)
        loop.close()
