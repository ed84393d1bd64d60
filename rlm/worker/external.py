"""Opens a manager's external systems from its configuration: broker, disk, store and topics.

Opening sends nothing to the cluster. Invalid files and settings raise InvalidConfigError at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlm.broker.dead_letters.dead_letter_topic import DeadLetterTopic
from rlm.broker.dead_letters.kafka_dead_letter_topic import DeadLetterSettings, KafkaDeadLetterTopic
from rlm.broker.own_broker import OwnBroker, ReconnectBackoff
from rlm.broker.spi import Broker
from rlm.config.load import Config
from rlm.config.sections import MetadataConfig
from rlm.process.host_check import check_host
from rlm.source.log_source import LogSource
from rlm.source.logdir import LogDirSource
from rlm.source.meta_properties import BrokerIdentity
from rlm.worker.cluster_access import client_properties, open_bootstrap, open_metadata_topic
from rlm.worker.store_access import open_chunk_storage
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.cache.rocksdb_options import RocksDbSettings
from rlmm.topic.event_topic import EventTopic
from rsm.plugins.calls import PluginFailed, ignore_failure
from rsm.segment.clock import Clock
from rsm.storage.chunk_storage import ChunkStorage, RequestObserver, ignore_request


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
    config: Config,
    clock: Clock,
    plugin_failed: PluginFailed = ignore_failure,
    observe: RequestObserver = ignore_request,
) -> ExternalSystems:
    """Open all external systems. Raises InvalidConfigError.

    Calls `observe` for each request to the store, and `plugin_failed` for each error of a plug-in.
    """
    identity = check_host(config)
    return ExternalSystems(
        identity=identity,
        broker=_own_broker(config, identity, clock),
        source=LogDirSource(config.host.log_dirs, clock=clock),
        storage=open_chunk_storage(
            config.storage,
            plugin_failed,
            observe,
            stream_buffer_bytes=config.offloading.stream_buffer_bytes,
        ),
        metadata_topic=open_metadata_topic(config.cluster, config.metadata, follows=True),
        dead_letters=KafkaDeadLetterTopic(
            client_properties(config.cluster),
            DeadLetterSettings(
                name=config.manager.delete_dead_letter_topic,
                replication_factor=config.metadata.replication_factor,
            ),
        ),
    )


def _own_broker(config: Config, identity: BrokerIdentity, clock: Clock) -> Broker:
    return OwnBroker(
        open_bootstrap(config.cluster, clock),
        clock,
        node_id=identity.node_id,
        cluster_id=identity.cluster_id,
        backoff=ReconnectBackoff(),
    )


def open_metadata_cache(metadata: MetadataConfig, directory: Path) -> MetadataCache:
    """Open a process's own metadata cache in `directory`; create the cache if it is missing."""
    settings = RocksDbSettings(
        block_cache_bytes=metadata.block_cache_bytes,
        write_buffer_bytes=metadata.write_buffer_bytes,
    )
    return MetadataCache(RocksDbStore(directory, settings))
