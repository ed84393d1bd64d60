"""The manager's composition root: a configuration becomes the objects that do the work.

`build_manager` is what the process runs. A program that needs other parts (a test that breaks the
store, say) makes its own `Outside` and calls `compose`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from threading import Event
from uuid import UUID, uuid5

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.dead_letter_topic import DeadLetterSettings, KafkaDeadLetterTopic
from rlm.broker.dead_letters import DeadLetterTopic
from rlm.broker.own_broker import OwnBroker, ReconnectBackoff
from rlm.broker.spi import Broker
from rlm.broker.topic_admin import ClusterTopicAdmin
from rlm.broker_manager import BrokerManager, ManagerPace, ManagerWork
from rlm.config.load import Config
from rlm.config.sections import ClusterConfig, ManagerConfig, MetadataConfig, StorageConfig
from rlm.config.values import CopyVerification, HostPort
from rlm.fresh_id import fresh_id
from rlm.manager_gauges import ManagerGauges
from rlm.metrics import Metrics
from rlm.policy.view import PolicyLimits
from rlm.process.host_check import check_host
from rlm.source.log_source import LogSource
from rlm.source.logdir import LogDirSource
from rlm.source.meta_properties import BrokerIdentity
from rlm.system_clock import SystemClock
from rlm.tasks.broker_retention import BrokerRetention
from rlm.tasks.copy_lane import CopyLanes
from rlm.tasks.expirer import Expirer
from rlm.tasks.expiry_lane import ExpiryLanes
from rlm.tasks.heartbeat import Heartbeat, ProcessCard
from rlm.tasks.lanes import Lanes
from rlm.tasks.leader import LeaderCycle
from rlm.tasks.leadership import Leadership
from rlm.tasks.policy_writer import PolicyWriter
from rlm.tasks.ports import Ports
from rlm.tasks.retention_keeper import RetentionKeeper
from rlm.tasks.tiering import Tiering
from rlm.tasks.trimmer import Trimmer
from rlm.wire.connection import ConnectionSettings, Connector
from rlm.wire.security import security_of
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.cache.rocksdb import RocksDbStore
from rlmm.events import ProcessRole
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.topic.event_topic import EventTopic
from rlmm.topic.kafka import KafkaTopic
from rlmm.topic.shape import TopicSettings
from rsm.layout.keys import ObjectKeys
from rsm.layout.raw import RawLayout
from rsm.manager import SegmentStorageManager
from rsm.segment.clock import Clock
from rsm.spi import RemoteStorageManager
from rsm.storage.bindings import open_storage
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.observed import ObservedChunkStorage
from rsm.transfer import ReadBack

_log = logging.getLogger(__name__)

_PROCESS_IDS = UUID("9d0a6c1e-5b0b-4f5e-8c57-6f1d4b3f2a10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a manager touches: the broker and its disk, the store, the two topics."""

    identity: BrokerIdentity
    broker: Broker
    source: LogSource
    storage: ChunkStorage
    metadata_topic: EventTopic
    dead_letters: DeadLetterTopic


def build_manager(config: Config, http_address: HostPort, metrics: Metrics) -> BrokerManager:
    """The manager beside the broker whose log dirs the configuration names.

    Raises InvalidConfigError for what files show at once. Nothing has been asked of the cluster.
    """
    return compose(config, open_outside(config, SystemClock()), http_address, metrics)


def open_outside(config: Config, clock: Clock) -> Outside:
    """Everything real. InvalidConfigError."""
    identity = check_host(config)
    return Outside(
        identity=identity,
        broker=_own_broker(config, identity, clock),
        source=LogDirSource(config.host.log_dirs, clock=clock),
        storage=open_chunk_storage(config.storage),
        metadata_topic=open_metadata_topic(config.cluster, config.metadata),
        dead_letters=KafkaDeadLetterTopic(
            client_properties(config.cluster),
            DeadLetterSettings(
                name=config.manager.delete_dead_letter_topic,
                replication_factor=config.metadata.replication_factor,
            ),
        ),
    )


def open_chunk_storage(config: StorageConfig) -> ChunkStorage:
    """The configured store. InvalidConfigError."""
    return open_storage(config.backend.value, {"root": str(config.filesystem_root)})


def client_properties(config: ClusterConfig) -> Mapping[str, str]:
    """Librdkafka's configuration for that cluster, secrets in clear."""
    return {**config.client.librdkafka(), "bootstrap.servers": config.bootstrap_text}


def open_metadata_topic(cluster: ClusterConfig, metadata: MetadataConfig) -> EventTopic:
    """The metadata topic; nothing is asked of the cluster yet."""
    settings = TopicSettings(
        name=metadata.topic_name,
        partition_count=metadata.num_partitions,
        replication_factor=metadata.replication_factor,
    )
    return KafkaTopic(client_properties(cluster), settings)


def storage_manager(config: StorageConfig, storage: ChunkStorage) -> RemoteStorageManager:
    """Segments as objects of that store, as the configuration says."""
    verify_by_reading = config.copy_verify is CopyVerification.READ
    return SegmentStorageManager(
        storage=storage,
        keys=ObjectKeys(prefix=config.key_prefix),
        layouts=(RawLayout(),),
        read_back=ReadBack() if verify_by_reading else None,
    )


def compose(
    config: Config, outside: Outside, http_address: HostPort, metrics: Metrics
) -> BrokerManager:
    """Wire a manager from its parts; `start` of the result begins the work."""
    clock = SystemClock()
    metadata = TopicBasedRemoteLogMetadataManager(
        outside.metadata_topic,
        MetadataCache(RocksDbStore(config.host.state_dir / "manager" / "cache")),
        clock,
        ManagerSettings(
            consume_wait_ms=config.metadata.consume_wait_ms,
            retire_grace_ms=config.manager.orphan_grace_ms,
        ),
    )
    ports = Ports(
        broker=outside.broker,
        source=outside.source,
        storage=storage_manager(
            config.storage, ObservedChunkStorage(outside.storage, _counted(metrics))
        ),
        metadata=metadata,
        dead_letters=outside.dead_letters,
        clock=clock,
        new_id=fresh_id,
    )
    return _manage(config, ports, metadata, outside, http_address, metrics)


def _manage(
    config: Config,
    ports: Ports,
    metadata: TopicBasedRemoteLogMetadataManager,
    outside: Outside,
    http_address: HostPort,
    metrics: Metrics,
) -> BrokerManager:
    stopping = Event()
    copy_pool = ThreadPoolExecutor(config.manager.copier_thread_count, "copier")
    expiry_pool = ThreadPoolExecutor(config.manager.expiration_thread_count, "expirer")
    leadership = Leadership(ports, incarnation=ports.new_id())
    copies = CopyLanes(
        ports,
        lanes=Lanes(copy_pool, "copy"),
        leadership=leadership,
        metrics=metrics,
        stopping=stopping,
        attempt_timeout_ms=config.manager.copy_attempt_timeout_ms,
    )
    expiries = ExpiryLanes(
        ports,
        lanes=Lanes(expiry_pool, "expiry"),
        expirer=Expirer(
            ports,
            metrics=metrics,
            max_attempts=config.manager.delete_max_attempts,
            first_pause_ms=config.manager.task_interval_ms,
        ),
        leadership=leadership,
        stopping=stopping,
    )
    cycle = LeaderCycle(
        ports,
        leadership=leadership,
        copies=copies,
        expiries=expiries,
        trimmer=Trimmer(ports, plan_max_age_ms=config.manager.trim_plan_max_age_ms),
        limits=_limits(config),
    )
    card = _card(config, outside.identity, http_address)
    return BrokerManager(
        work=ManagerWork(
            confirm_cluster=lambda: ports.broker.leadership(()),
            begin_metadata=metadata.start,
            readiness=metadata.readiness,
            check_store=outside.storage.check_access,
            keep_retention=_retention_keeper(config, ports, metrics).step,
            cycle=cycle.step,
            heartbeat=Heartbeat(metadata, card, ports.new_id).step,
            gauges=ManagerGauges(
                metrics, oldest_copy_age_ms=copies.oldest_age_ms, metadata=metadata.metrics
            ),
        ),
        pace=ManagerPace(
            cycle_interval_ms=config.manager.task_interval_ms,
            heartbeat_interval_ms=config.process.heartbeat_interval_ms,
        ),
        metrics=metrics,
        clock=ports.clock,
        pools=(copy_pool, expiry_pool),
        stopping=stopping,
        resources=_closing(ports, metadata),
    )


def _closing(ports: Ports, metadata: TopicBasedRemoteLogMetadataManager) -> ExitStack:
    """Closed in this order: what acts first, what it is recorded in last."""
    resources = ExitStack()
    resources.callback(metadata.close)
    resources.callback(ports.storage.close)
    resources.callback(ports.dead_letters.close)
    resources.callback(ports.broker.close)
    return resources


def _retention_keeper(config: Config, ports: Ports, metrics: Metrics) -> RetentionKeeper:
    topics = ClusterTopicAdmin(_bootstrap(config, ports.clock))
    retention = BrokerRetention(topics, ports.clock)
    tiering = Tiering(
        PolicyWriter(ports.metadata, ports.new_id),
        retention,
        ports.clock,
        own_topics=own_topics(config.metadata, config.manager),
        progress=lambda message: _log.info("tiering", extra={"step": message}),
    )
    return RetentionKeeper(
        tiering,
        retention,
        topics=topics,
        metadata=ports.metadata,
        node_id=ports.broker.node_id,
        reassert=config.manager.retention_reassert,
        alarm=lambda topic: metrics.broker_retention_limited.labels(topic).inc(),
    )


def own_topics(metadata: MetadataConfig, manager: ManagerConfig) -> frozenset[str]:
    """The topics that this product keeps for itself; they are never tiered."""
    return frozenset({metadata.topic_name, manager.delete_dead_letter_topic})


def _bootstrap(config: Config, clock: Clock) -> Bootstrap:
    security = security_of(config.cluster.client.librdkafka())
    servers = [(server.host, server.port) for server in config.cluster.bootstrap_servers]
    return Bootstrap(servers, Connector(ConnectionSettings(security=security), clock))


def _own_broker(config: Config, identity: BrokerIdentity, clock: Clock) -> Broker:
    return OwnBroker(
        _bootstrap(config, clock),
        clock,
        node_id=identity.node_id,
        cluster_id=identity.cluster_id,
        backoff=ReconnectBackoff(),
    )


def _card(config: Config, identity: BrokerIdentity, http_address: HostPort) -> ProcessCard:
    """One registration per broker, whatever run of the process made it."""
    name = f"{identity.cluster_id}/{identity.node_id}/{ProcessRole.MANAGER.name}"
    return ProcessCard(
        process_id=uuid5(_PROCESS_IDS, name),
        role=ProcessRole.MANAGER,
        broker_id=identity.node_id,
        http_address=str(http_address),
        heartbeat_interval_ms=config.process.heartbeat_interval_ms,
        version=version("kafka-rlm"),
    )


def _limits(config: Config) -> PolicyLimits:
    return PolicyLimits(
        local_trim_margin_bytes=config.manager.trim_margin_bytes,
        local_trim_min_age_ms=config.manager.trim_min_age_ms,
        orphan_grace_ms=config.manager.orphan_grace_ms,
    )


def _counted(metrics: Metrics) -> Callable[[str, str], None]:
    return lambda operation, result: metrics.storage_requests.labels(operation, result).inc()
