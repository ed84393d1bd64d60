"""Open the systems outside of a process from its configuration: cluster, disk, store, topics.

Opening sends nothing to the cluster. Wrong files and settings raise InvalidConfigError at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.dead_letters.dead_letter_topic import DeadLetterSettings, KafkaDeadLetterTopic
from rlm.broker.dead_letters.dead_letters import DeadLetterTopic
from rlm.broker.own_broker import OwnBroker, ReconnectBackoff
from rlm.broker.spi import Broker
from rlm.config.load import Config
from rlm.config.sections import ClusterConfig, ManagerConfig, MetadataConfig
from rlm.process.host_check import check_host
from rlm.source.log_source import LogSource
from rlm.source.logdir import LogDirSource
from rlm.source.meta_properties import BrokerIdentity
from rlm.topics.originals_mirror import StoredOriginals
from rlm.wire.connection import ConnectionSettings, Connector
from rlm.wire.security.settings import security_of
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.cache.rocksdb_options import RocksDbSettings
from rlmm.topic.event_topic import EventTopic
from rlmm.topic.kafka import KafkaTimeouts, KafkaTopic
from rlmm.topic.shape import TopicSettings
from rsm.config.storage import StorageConfig
from rsm.layout.originals import OriginalsKeys
from rsm.layout.segment_layout import ObjectOrigin
from rsm.opening import open_segments, open_store
from rsm.plugins.calls import PluginFailed, ignore_failure
from rsm.segment.clock import Clock
from rsm.spi import RemoteStorageManager
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.wrappers.rehearsal import rehearsed
from rsm.system_clock import SystemClock

# To the broker's first response: the delay that a stopped or frozen host causes.
_CONNECT_TIMEOUT_MS = 5_000
_REQUEST_TIMEOUT_MS = 30_000
# Kafka's default for consumers, and a short wait so that a command reads an empty topic at once.
_FOLLOWER_FETCH_WAIT_MS = 500
_READER_FETCH_WAIT_MS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalSystems:
    """Represents the external systems of a manager: broker, disk, store, and two topics."""

    identity: BrokerIdentity
    broker: Broker
    source: LogSource
    storage: ChunkStorage
    metadata_topic: EventTopic
    dead_letters: DeadLetterTopic


def open_external_systems(
    config: Config, clock: Clock, plugin_failed: PluginFailed = ignore_failure
) -> ExternalSystems:
    """Open the real systems. InvalidConfigError."""
    identity = check_host(config)
    return ExternalSystems(
        identity=identity,
        broker=_own_broker(config, identity, clock),
        source=LogDirSource(config.host.log_dirs, clock=clock),
        storage=open_chunk_storage(config.storage, plugin_failed),
        metadata_topic=open_metadata_topic(config.cluster, config.metadata, follows=True),
        dead_letters=KafkaDeadLetterTopic(
            client_properties(config.cluster),
            DeadLetterSettings(
                name=config.manager.delete_dead_letter_topic,
                replication_factor=config.metadata.replication_factor,
            ),
        ),
    )


def open_bootstrap(
    cluster: ClusterConfig, clock: Clock, *, timeout_ms: int = _REQUEST_TIMEOUT_MS
) -> Bootstrap:
    """Open the access to any broker of the cluster.

    `timeout_ms` bounds each request, and all attempts to reach the bootstrap servers together.
    """
    servers = [(server.host, server.port) for server in cluster.bootstrap_servers]
    settings = ConnectionSettings(
        security=security_of(cluster.client.librdkafka()),
        connect_timeout_ms=max(1, min(_CONNECT_TIMEOUT_MS, timeout_ms // len(servers))),
        request_timeout_ms=timeout_ms,
    )
    return Bootstrap(servers, Connector(settings, clock))


def _own_broker(config: Config, identity: BrokerIdentity, clock: Clock) -> Broker:
    return OwnBroker(
        open_bootstrap(config.cluster, clock),
        clock,
        node_id=identity.node_id,
        cluster_id=identity.cluster_id,
        backoff=ReconnectBackoff(),
    )


def client_properties(config: ClusterConfig) -> Mapping[str, str]:
    """Return librdkafka's configuration for that cluster, with secrets in clear text."""
    return {**config.client.librdkafka(), "bootstrap.servers": config.bootstrap_text}


def open_metadata_topic(
    cluster: ClusterConfig, metadata: MetadataConfig, *, follows: bool = False
) -> EventTopic:
    """Open the metadata topic; sends nothing to the cluster yet.

    With `follows`, a process reads it for its whole life, so an idle topic causes few fetches.
    Other readers read to its end and need it soon.
    """
    settings = TopicSettings(
        name=metadata.topic_name,
        partition_count=metadata.num_partitions,
        replication_factor=metadata.replication_factor,
    )
    timeouts = KafkaTimeouts(
        fetch_wait_ms=_FOLLOWER_FETCH_WAIT_MS if follows else _READER_FETCH_WAIT_MS,
        produce_ms=metadata.producer_request_timeout_ms,
        delivery_ms=metadata.producer_delivery_timeout_ms,
    )
    return KafkaTopic(client_properties(cluster), settings, timeouts)


def open_metadata_cache(metadata: MetadataConfig, directory: Path) -> MetadataCache:
    """Open a process's own copy of the metadata; create it if missing."""
    settings = RocksDbSettings(
        block_cache_bytes=metadata.block_cache_bytes,
        write_buffer_bytes=metadata.write_buffer_bytes,
    )
    return MetadataCache(RocksDbStore(directory, settings))


def own_topics(metadata: MetadataConfig, manager: ManagerConfig) -> frozenset[str]:
    """Return the topics that `rlm` uses itself; they are never tiered."""
    return frozenset({metadata.topic_name, manager.delete_dead_letter_topic})


def open_chunk_storage(
    config: StorageConfig, plugin_failed: PluginFailed = ignore_failure
) -> ChunkStorage:
    """Open the store, with the delays, limits and faults of a rehearsal if configured."""
    store = open_store(config.store(), plugin_failed)
    return rehearsed(store, config.rehearsal(), SystemClock())


def stored_originals(config: StorageConfig, storage: ChunkStorage) -> StoredOriginals:
    """Open the originals of topics in that store, next to the segments."""
    return StoredOriginals(storage, OriginalsKeys(prefix=config.key_prefix))


def storage_manager(
    config: StorageConfig,
    storage: ChunkStorage,
    origin: ObjectOrigin | None = None,
    plugin_failed: PluginFailed = ignore_failure,
) -> RemoteStorageManager:
    """Open segments as objects of that store as configured; new ones record `origin`."""
    return open_segments(config.segments(), storage, origin, plugin_failed)
