"""The gateway's composition root: a configuration becomes the objects that serve clients."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rlm.broker.bootstrap import Bootstrap
from rlm.config.load import Config
from rlm.config.sections import StorageConfig
from rlm.config.values import HostPort
from rlm.fresh_id import fresh_id
from rlm.gateway.context import Answering
from rlm.gateway.live_facts import LiveFacts
from rlm.gateway.local_starts import LocalStarts
from rlm.gateway.server import GatewayParts
from rlm.gateway.server_thread import ServerThread
from rlm.gateway.session_parts import SessionParts
from rlm.gateway.tier_facts import MetadataTierView
from rlm.gateway.tier_reader import TierReader
from rlm.gateway_limits import read_turns, server_limits, session_limits
from rlm.gateway_metrics import GatewayMetrics, GatewaySources
from rlm.gateway_security import note_host_acls, open_tls
from rlm.gateway_stand import Ground, Stand, identity_of_host, take_stand
from rlm.gateway_worker import GatewayWork, GatewayWorker
from rlm.metadata_metrics import MetadataCollector
from rlm.metrics import Metrics
from rlm.outside import (
    open_bootstrap,
    open_chunk_storage,
    open_metadata_cache,
    open_metadata_topic,
    storage_manager,
)
from rlm.remote_read.anomalies import ReadAnomalies
from rlm.remote_read.fetcher import RemoteFetcher, RemoteFetchSettings
from rlm.remote_read.reader import RemoteLogReader
from rlm.remote_read.segment_parts import SegmentPart
from rlm.remote_read.timestamps import RemoteTimestamps
from rlm.system_clock import SystemClock
from rlm.tasks.heartbeat import Heartbeat, ProcessCard
from rlmm.events import ProcessRole
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.event_topic import EventTopic
from rsm.cache.chunk_cache import ChunkCache, ChunkCacheSettings
from rsm.segment.clock import Clock
from rsm.spi import RemoteStorageManager
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.observed import ObservedChunkStorage

_END_CONNECTIONS_MS = 6_000
_REWRITES_AT_ONCE = 32


def build_gateway(
    config: Config,
    listener: socket.socket,
    http_address: HostPort,
    metrics: Metrics,
    *,
    worker: int = 1,
    open_store: Callable[[StorageConfig], ChunkStorage] = open_chunk_storage,
) -> GatewayWorker:
    """The gateway of the broker whose log dirs the configuration names; of all, if it names none.

    `worker` tells the processes of one gateway apart, from 1 on. Raises InvalidConfigError for what
    files show at once. Nothing has been asked of the cluster.
    """
    identity = identity_of_host(config)
    tier = _open_tier(config, metrics, open_store(config.storage), worker)
    server = ServerThread()
    cluster = open_bootstrap(config.cluster, tier.clock)
    stand = take_stand(
        Ground(
            config=config,
            identity=identity,
            worker=worker,
            listener=listener,
            cluster=cluster,
            topic=tier.topic,
            keeper=server,
            clock=tier.clock,
            unserved=metrics.gateway_brokers_without_door.set,
        )
    )
    facts = LiveFacts(
        stand.front,
        cluster=cluster,
        metadata=tier.metadata,
        positions=lambda: tier.metadata.metrics().positions,
        timestamps=tier.timestamps(),
        answering=Answering(
            pool=tier.answer_pool,
            clock=tier.clock,
            timeout_ms=config.gateway_limits.list_offsets_timeout_ms,
        ),
        new_id=fresh_id,
        clock=tier.clock,
    )
    parts = _parts(config, tier, facts, metrics)
    serving = ExitStack()
    serving.callback(server.stop, timeout_ms=_END_CONNECTIONS_MS)
    card = _card(config, stand, http_address)
    heartbeat = Heartbeat(tier.metadata, card, fresh_id, applied=facts.applied)
    return GatewayWorker(
        work=GatewayWork(
            confirm_cluster=lambda: _confirm_cluster(stand, cluster, metrics),
            begin_metadata=tier.metadata.start,
            begin_serving=lambda: server.start(parts),
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
    """What is stored, and what reads it.

    `store_pool` reads the store and does nothing else, `ask_pool` begins fetches. Rewrites run in
    `rewrite_pool`, where they mostly wait for the answers that `answer_pool` finds: none of them
    keeps a fetch waiting.
    """

    clock: Clock
    topic: EventTopic
    metadata: TopicBasedRemoteLogMetadataManager
    storage: RemoteStorageManager
    store_pool: ThreadPoolExecutor
    ask_pool: ThreadPoolExecutor
    rewrite_pool: ThreadPoolExecutor
    answer_pool: ThreadPoolExecutor
    resources: ExitStack

    def timestamps(self) -> RemoteTimestamps:
        reader = RemoteLogReader(self.metadata, self.storage, self.store_pool)
        return RemoteTimestamps(self.metadata, self.storage, reader)


def _open_tier(config: Config, metrics: Metrics, store: ChunkStorage, worker: int) -> _Tier:
    clock = SystemClock()
    thread_count = config.gateway.reader_thread_count
    topic = open_metadata_topic(config.cluster, config.metadata)
    tier = _Tier(
        clock=clock,
        topic=topic,
        metadata=TopicBasedRemoteLogMetadataManager(
            topic,
            open_metadata_cache(config.metadata, _cache_directory(config, worker)),
            clock,
            ManagerSettings(consume_wait_ms=config.metadata.consume_wait_ms),
        ),
        storage=storage_manager(
            config.storage,
            ObservedChunkStorage(
                store,
                lambda operation, result: metrics.storage_requests.labels(operation, result).inc(),
            ),
        ),
        store_pool=ThreadPoolExecutor(thread_count, "store-reader"),
        ask_pool=ThreadPoolExecutor(thread_count, "tier-asker"),
        rewrite_pool=ThreadPoolExecutor(_REWRITES_AT_ONCE, "rewriter"),
        answer_pool=ThreadPoolExecutor(thread_count, "rewrite-asker"),
        resources=ExitStack(),
    )
    tier.resources.callback(tier.storage.close)
    tier.resources.callback(tier.metadata.close)
    for pool in (tier.store_pool, tier.ask_pool, tier.rewrite_pool, tier.answer_pool):
        tier.resources.callback(pool.shutdown, wait=False, cancel_futures=True)
    return tier


def _cache_directory(config: Config, worker: int) -> Path:
    """Of its own for each process: a cache has one writer."""
    name = "cache" if worker == 1 else f"cache-{worker}"
    return config.host.state_dir / "gateway" / name


def _parts(config: Config, tier: _Tier, facts: LiveFacts, metrics: Metrics) -> GatewayParts:
    settings = config.gateway
    tls = open_tls(config, tier.clock, metrics)
    anomalies = ReadAnomalies()
    cache = ChunkCache[SegmentPart](
        executor=tier.store_pool,
        clock=tier.clock,
        settings=ChunkCacheSettings(
            budget_bytes=settings.chunk_cache_bytes,
            concurrent_reads=settings.reader_thread_count,
        ),
    )
    fetcher = RemoteFetcher(
        metadata=tier.metadata,
        storage=tier.storage,
        cache=cache,
        anomalies=anomalies,
        settings=RemoteFetchSettings(chunk_bytes=settings.chunk_bytes),
    )
    parts = GatewayParts(
        session=SessionParts(
            context=facts.context,
            view=MetadataTierView(tier.metadata, tier.clock),
            local_starts=LocalStarts(),
            clock=tier.clock,
            limits=session_limits(config),
        ),
        tier=TierReader(tier.metadata, fetcher),
        pool=tier.ask_pool,
        rewrite_pool=tier.rewrite_pool,
        turns=read_turns(config, tier.clock),
        is_pressed=lambda: cache.state().waiting_count > 0,
        client_tls=tls.towards_clients,
        upstream_tls=tls.towards_brokers,
        limits=server_limits(config),
    )
    sources = GatewaySources(
        counts=parts.counts,
        turns=parts.turns,
        anomalies=anomalies.counts,
        cache=cache.state,
        cache_budget_bytes=settings.chunk_cache_bytes,
    )
    metrics.registry.register(GatewayMetrics(sources))
    metrics.registry.register(MetadataCollector(tier.metadata.metrics))
    return parts


def _confirm_cluster(stand: Stand, cluster: Bootstrap, metrics: Metrics) -> None:
    stand.confirm()
    note_host_acls(cluster, metrics)


def _card(config: Config, stand: Stand, http_address: HostPort) -> ProcessCard:
    return ProcessCard(
        process_id=stand.process_id,
        role=ProcessRole.GATEWAY,
        broker_id=stand.broker_id,
        http_address=str(http_address),
        heartbeat_interval_ms=config.gateway.heartbeat_interval_ms,
        version=version("kafka-rlm"),
        gateway_address=str(stand.address),
    )
