"""Builds the gateway's remote tier: metadata, store, caches, readers and thread pools."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rlm.config.load import Config
from rlm.gateway.model.context import QuerySettings
from rlm.gateway.remote.cache_cleaner import CacheCleaner, ChunksOfObjects
from rlm.gateway.remote.cached_segments import CachedSegments
from rlm.gateway.remote.fetcher import RemoteFetcher, RemoteFetchSettings
from rlm.gateway.remote.remote_partition_reader import LEAST_CATCH_UP_MS, RemotePartitionReader
from rlm.metrics.metrics import Metrics
from rlm.remote_read.anomalies import ReadAnomalies
from rlm.remote_read.anomaly_reporter import AnomalyReporter
from rlm.remote_read.segment_parts import SegmentPart
from rlm.remote_read.timestamps import RemoteTimestamps
from rlm.worker.cluster_access import open_metadata_topic
from rlm.worker.external import open_metadata_cache
from rlm.worker.fresh_id import fresh_id
from rlm.worker.metadata_manager import open_metadata_manager
from rlm.worker.observed_store import observed_store
from rlm.worker.store_access import open_chunk_storage, open_storage_manager
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.event_topic import EventTopic
from rsm.cache.chunk_cache import ChunkCache, ChunkCacheSettings
from rsm.cache.disk_cached import DiskCachedChunkStorage
from rsm.cache.disk_chunks import DiskChunks, DiskChunksSettings, remove_chunks
from rsm.segment.clock import Clock
from rsm.spi import RemoteStorageManager
from rsm.system_clock import SystemClock

_REWRITES_AT_ONCE = 32
_WORKER = "worker-"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pools:
    """Represents thread pools, which are separate so that rewrites never delay fetches.

    `store` only reads the store, and `fetch_starts` starts remote fetches. Rewrites that may wait
    for the store run in `lookups`, all others in `rewrites`. For all rewrites, `rewrite_reads`
    reads the store, and `rewrite_writes` writes to the metadata topic.
    """

    store: ThreadPoolExecutor
    fetch_starts: ThreadPoolExecutor
    rewrites: ThreadPoolExecutor
    lookups: ThreadPoolExecutor
    rewrite_reads: ThreadPoolExecutor
    rewrite_writes: ThreadPoolExecutor

    def all(self) -> tuple[ThreadPoolExecutor, ...]:
        return (
            self.store,
            self.fetch_starts,
            self.rewrites,
            self.lookups,
            self.rewrite_reads,
            self.rewrite_writes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTier:
    """Represents the parts that outlive a connection. Closing `resources` closes them."""

    clock: Clock
    topic: EventTopic
    metadata: TopicBasedRemoteLogMetadataManager
    pools: _Pools
    cache: ChunkCache[SegmentPart]
    cleaner: CacheCleaner
    anomalies: ReadAnomalies
    reporter: AnomalyReporter
    reader: RemotePartitionReader
    timestamps: RemoteTimestamps
    query_settings: QuerySettings
    resources: ExitStack


def open_tier(config: Config, metrics: Metrics, worker: int) -> GatewayTier:
    """Build the tier, and open its store. `worker` numbers the gateway's processes, from 1."""
    clock = SystemClock()
    topic = open_metadata_topic(config.cluster, config.metadata, follows=True)
    metadata = open_metadata_manager(
        config.metadata,
        topic,
        open_metadata_cache(config.metadata, _cache_directory(config, worker)),
        clock,
        ManagerSettings(consume_wait_ms=config.metadata.consume_wait_ms),
        metrics.count_plugin_error,
    )
    storage = _storage_manager(config, metrics, worker)
    pools = _pools(config.gateway.reader_thread_count)
    cache = _chunk_cache(config, pools.store, clock)
    anomalies = ReadAnomalies(clock)
    fetcher = RemoteFetcher(
        metadata=metadata,
        storage=storage,
        cache=cache,
        anomalies=anomalies,
        clock=clock,
        settings=RemoteFetchSettings(chunk_bytes=config.gateway.chunk_bytes),
    )
    catch_up_ms = max(config.gateway.fetch_max_wait_ms, LEAST_CATCH_UP_MS)
    timeout_ms = config.gateway_limits.list_offsets_timeout_ms
    # A lookup occupies a thread no longer than its client waits.
    segments = CachedSegments(fetcher=fetcher, cache=cache, storage=storage, patience_ms=timeout_ms)
    resources = ExitStack()
    resources.callback(storage.close)
    resources.callback(metadata.close)
    for pool in pools.all():
        resources.callback(pool.shutdown, wait=False, cancel_futures=True)
    return GatewayTier(
        clock=clock,
        topic=topic,
        metadata=metadata,
        pools=pools,
        cache=cache,
        cleaner=CacheCleaner(
            metadata,
            storage=storage,
            chunks=ChunksOfObjects(cache),
            clock=clock,
            dropped=lambda why, count: metrics.cache_objects_dropped.labels(why.value).inc(count),
        ),
        anomalies=anomalies,
        reporter=AnomalyReporter(anomalies, metadata, clock, fresh_id),
        reader=RemotePartitionReader(metadata, fetcher, catch_up_ms=catch_up_ms),
        timestamps=RemoteTimestamps(metadata, segments),
        query_settings=QuerySettings(
            store=pools.rewrite_reads,
            topic=pools.rewrite_writes,
            clock=clock,
            timeout_ms=timeout_ms,
        ),
        resources=resources,
    )


def _pools(thread_count: int) -> _Pools:
    return _Pools(
        store=ThreadPoolExecutor(thread_count, "store-reader"),
        fetch_starts=ThreadPoolExecutor(thread_count, "fetch-starter"),
        rewrites=ThreadPoolExecutor(_REWRITES_AT_ONCE, "rewriter"),
        lookups=ThreadPoolExecutor(_REWRITES_AT_ONCE, "lookup-rewriter"),
        rewrite_reads=ThreadPoolExecutor(thread_count, "rewrite-reader"),
        rewrite_writes=ThreadPoolExecutor(thread_count, "rewrite-writer"),
    )


def _storage_manager(config: Config, metrics: Metrics, worker: int) -> RemoteStorageManager:
    """Open the store with request metrics and, if configured, the disk cache."""
    store = open_chunk_storage(
        config.storage, metrics.count_plugin_error, metrics.count_store_request
    )
    store = observed_store(store, config.storage, metrics, SystemClock())
    directory = config.gateway.chunk_cache_path
    if directory is not None:
        if worker == 1:
            _remove_of_former_workers(directory, config.gateway.worker_count)
        settings = DiskChunksSettings(
            directory=directory / f"{_WORKER}{worker}",
            budget_bytes=config.gateway.chunk_cache_disk_bytes,
        )
        store = DiskCachedChunkStorage(store, _disk_chunks(settings, metrics))
    return open_storage_manager(config.storage, store, plugin_failed=metrics.count_plugin_error)


def _remove_of_former_workers(directory: Path, worker_count: int) -> None:
    """Remove the disk caches of workers above `worker_count`, which no process uses any more."""
    for path in directory.glob(f"{_WORKER}*"):
        number = path.name.removeprefix(_WORKER)
        if number.isdecimal() and int(number) > worker_count:
            remove_chunks(path)


def _disk_chunks(settings: DiskChunksSettings, metrics: Metrics) -> DiskChunks:
    return DiskChunks(
        settings,
        SystemClock(),
        lambda result: metrics.disk_cache_results.labels(result.value).inc(),
    )


def _chunk_cache(
    config: Config, executor: ThreadPoolExecutor, clock: Clock
) -> ChunkCache[SegmentPart]:
    return ChunkCache[SegmentPart](
        executor=executor,
        clock=clock,
        settings=ChunkCacheSettings(
            budget_bytes=config.gateway.chunk_cache_bytes,
            concurrent_reads=config.gateway.reader_thread_count,
        ),
    )


def _cache_directory(config: Config, worker: int) -> Path:
    """Return this process's own directory, because a cache can have only one writer."""
    name = "cache" if worker == 1 else f"cache-{worker}"
    return config.host.state_dir / "gateway" / name
