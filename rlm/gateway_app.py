"""The gateway's composition root: a configuration becomes the objects that serve clients."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from uuid import UUID, uuid5

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.errors import ForeignClusterError
from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.fresh_id import fresh_id
from rlm.gateway.door import Door
from rlm.gateway.front import BrokerFront, Place
from rlm.gateway.limits import SessionLimits
from rlm.gateway.live_facts import LiveFacts
from rlm.gateway.local_starts import LocalStarts
from rlm.gateway.server import GatewayParts, ServerLimits
from rlm.gateway.server_thread import ServerThread
from rlm.gateway.session_parts import SessionParts
from rlm.gateway.tier_facts import MetadataTierView
from rlm.gateway.tier_reader import TierReader
from rlm.gateway_worker import GatewayWork, GatewayWorker
from rlm.metrics import Metrics
from rlm.outside import open_bootstrap, open_chunk_storage, open_metadata_topic, storage_manager
from rlm.process.host_check import check_host
from rlm.remote_read.anomalies import ReadAnomalies
from rlm.remote_read.fetcher import RemoteFetcher, RemoteFetchSettings
from rlm.remote_read.reader import RemoteLogReader
from rlm.remote_read.timestamps import RemoteTimestamps
from rlm.rest.http_server import reachable_address
from rlm.source.meta_properties import BrokerIdentity
from rlm.system_clock import SystemClock
from rlm.tasks.heartbeat import Heartbeat, ProcessCard
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.events import ProcessRole
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rsm.cache.chunk_cache import ChunkCache, ChunkCacheSettings
from rsm.segment.clock import Clock
from rsm.spi import RemoteStorageManager
from rsm.storage.observed import ObservedChunkStorage

_PROCESS_IDS = UUID("5e0f0f0a-3b0e-4c70-9e54-6f0ad1c7e0b3")
_END_CONNECTIONS_MS = 6_000


def build_gateway(
    config: Config, listener: socket.socket, http_address: HostPort, metrics: Metrics
) -> GatewayWorker:
    """The gateway beside the broker whose log dirs the configuration names.

    Raises InvalidConfigError for what files show at once. Nothing has been asked of the cluster.
    """
    identity = check_host(config)
    tier = _open_tier(config, metrics)
    own = config.gateway.advertised_listener or reachable_address(listener)
    cluster = open_bootstrap(config.cluster, tier.clock)
    front = BrokerFront(
        Place(
            node_id=identity.node_id,
            own=own,
            fixed=config.gateway.node_addresses,
            direct_if_unserved=config.gateway.direct_if_unserved,
        )
    )
    facts = LiveFacts(
        front,
        cluster=cluster,
        metadata=tier.metadata,
        timestamps=tier.timestamps(),
        new_id=fresh_id,
        clock=tier.clock,
    )
    parts = _parts(config, tier, facts)
    server = ServerThread(parts)
    server.open(Door(name="broker", listener=listener, upstreams=front.upstreams))
    serving = ExitStack()
    serving.callback(server.stop, timeout_ms=_END_CONNECTIONS_MS)
    card = _card(config, identity, http_address=http_address, own=own)
    heartbeat = Heartbeat(
        tier.metadata, card, fresh_id, applied=lambda: tier.metadata.metrics().positions
    )
    return GatewayWorker(
        work=GatewayWork(
            confirm_cluster=lambda: _confirm_cluster(cluster, identity),
            begin_metadata=tier.metadata.start,
            begin_serving=server.start,
            readiness=tier.metadata.readiness,
            refresh=facts.refresh,
            heartbeat=heartbeat.step,
            has_ended=lambda: server.has_ended,
        ),
        heartbeat_interval_ms=config.gateway.heartbeat_interval_ms,
        failed=lambda task, error: metrics.task_failures.labels(task, type(error).__name__).inc(),
        clock=tier.clock,
        serving=serving,
        resources=tier.resources,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tier:
    """What is stored, and what reads it. `store_pool` reads the store and does nothing else."""

    clock: Clock
    metadata: TopicBasedRemoteLogMetadataManager
    storage: RemoteStorageManager
    store_pool: ThreadPoolExecutor
    ask_pool: ThreadPoolExecutor
    resources: ExitStack

    def timestamps(self) -> RemoteTimestamps:
        reader = RemoteLogReader(self.metadata, self.storage, self.store_pool)
        return RemoteTimestamps(self.metadata, self.storage, reader)


def _open_tier(config: Config, metrics: Metrics) -> _Tier:
    clock = SystemClock()
    thread_count = config.gateway.reader_thread_count
    tier = _Tier(
        clock=clock,
        metadata=TopicBasedRemoteLogMetadataManager(
            open_metadata_topic(config.cluster, config.metadata),
            MetadataCache(RocksDbStore(config.host.state_dir / "gateway" / "cache")),
            clock,
            ManagerSettings(consume_wait_ms=config.metadata.consume_wait_ms),
        ),
        storage=storage_manager(
            config.storage,
            ObservedChunkStorage(
                open_chunk_storage(config.storage),
                lambda operation, result: metrics.storage_requests.labels(operation, result).inc(),
            ),
        ),
        store_pool=ThreadPoolExecutor(thread_count, "store-reader"),
        ask_pool=ThreadPoolExecutor(thread_count, "tier-asker"),
        resources=ExitStack(),
    )
    tier.resources.callback(tier.storage.close)
    tier.resources.callback(tier.metadata.close)
    for pool in (tier.store_pool, tier.ask_pool):
        tier.resources.callback(pool.shutdown, wait=False, cancel_futures=True)
    return tier


def _parts(config: Config, tier: _Tier, facts: LiveFacts) -> GatewayParts:
    settings = config.gateway
    fetcher = RemoteFetcher(
        metadata=tier.metadata,
        storage=tier.storage,
        cache=ChunkCache(
            executor=tier.store_pool,
            clock=tier.clock,
            settings=ChunkCacheSettings(
                budget_bytes=settings.chunk_cache_bytes,
                concurrent_reads=settings.reader_thread_count,
            ),
        ),
        anomalies=ReadAnomalies(),
        settings=RemoteFetchSettings(chunk_bytes=settings.chunk_bytes),
    )
    return GatewayParts(
        session=SessionParts(
            context=facts.context,
            view=MetadataTierView(tier.metadata, tier.clock),
            local_starts=LocalStarts(),
            clock=tier.clock,
            limits=SessionLimits(
                request_bytes=settings.request_max_bytes,
                remote_wait_ms=settings.fetch_max_wait_ms,
            ),
        ),
        tier=TierReader(tier.metadata, fetcher),
        pool=tier.ask_pool,
        limits=ServerLimits(connection_count=settings.max_connections),
    )


def _confirm_cluster(cluster: Bootstrap, identity: BrokerIdentity) -> None:
    """Nothing is made in a cluster that is not ours. ForeignClusterError, RetriableError."""
    found = cluster.view(()).cluster_id
    if found != identity.cluster_id:
        raise ForeignClusterError(
            "bootstrap.servers lead to another cluster than log.dirs belong to",
            expected=identity.cluster_id,
            found=found,
        )


def _card(
    config: Config, identity: BrokerIdentity, *, http_address: HostPort, own: HostPort
) -> ProcessCard:
    """One registration per broker, whatever run of the process made it."""
    name = f"{identity.cluster_id}/{identity.node_id}/{ProcessRole.GATEWAY.name}"
    return ProcessCard(
        process_id=uuid5(_PROCESS_IDS, name),
        role=ProcessRole.GATEWAY,
        broker_id=identity.node_id,
        http_address=str(http_address),
        heartbeat_interval_ms=config.gateway.heartbeat_interval_ms,
        version=version("kafka-rlm"),
        gateway_address=str(own),
    )
