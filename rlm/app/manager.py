"""Composes the manager: builds its objects from a configuration.

The manager's process calls `build_manager`. A program that replaces parts, such as a test with a
failing store, builds its own `ExternalSystems` and calls `compose`.
"""

from __future__ import annotations

from contextlib import ExitStack
from importlib.metadata import version
from uuid import UUID, uuid5

from rlm.app.broker_manager import BrokerManager
from rlm.app.command_access import open_command_access
from rlm.app.manager_gauges import ManagerGauges
from rlm.app.manager_lanes import ManagerLanes, SegmentLanes, open_pools, open_segment_lanes
from rlm.app.store_loops import open_store_loops
from rlm.broker.groups.cluster_share_groups import ClusterShareGroups
from rlm.broker.topics.topic_admin import ClusterTopicAdmin
from rlm.config.load import Config
from rlm.metrics.metadata import MetadataCollector
from rlm.metrics.metrics import Metrics
from rlm.policy.view import PolicyLimits
from rlm.process.host_identity import read_host_identity
from rlm.process.state_dir import state_id
from rlm.rest.api_listener import ApiListener
from rlm.source.local_disks import LogDirDisks
from rlm.source.meta_properties import BrokerIdentity
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.context.store_witness import StoreWitness
from rlm.tasks.cycle.leader import LeaderCycle
from rlm.tasks.cycle.outage_watch import OutageLimits, OutageWatch
from rlm.tasks.cycle.partition_views import PartitionViews
from rlm.tasks.cycle.store_check import StoreCheck
from rlm.tasks.cycle.stream_watch import StreamWatch
from rlm.tasks.deleting.expirer import Expirer
from rlm.tasks.deleting.expiry_lane import ExpiryLanes
from rlm.tasks.deleting.streamed_deletion import StreamedDeletion
from rlm.tasks.deleting.trimmer import Trimmer
from rlm.tasks.leadership.heartbeat import Heartbeat, ProcessDescription, live_rivals
from rlm.tasks.leadership.leadership import Leadership
from rlm.topics.broker_retention import BrokerRetention
from rlm.topics.enable import Activation
from rlm.topics.policy_writer import PolicyWriter
from rlm.topics.retention_guard import RetentionKeeper
from rlm.worker.cluster_access import open_bootstrap
from rlm.worker.external import ExternalSystems, open_external_systems, open_metadata_cache
from rlm.worker.file_defaults import registered_defaults
from rlm.worker.fresh_id import fresh_id
from rlm.worker.metadata_manager import open_metadata_manager
from rlm.worker.observed_store import observed_store
from rlm.worker.plugin_check import has_plugin
from rlm.worker.store_access import open_storage_manager
from rlmm.events.registration import ProcessRole, dated_registrations
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.spi import RemoteLogMetadataManager
from rsm.layout.segment_layout import ObjectOrigin
from rsm.storage.chunk_storage import ChunkStorage
from rsm.system_clock import SystemClock

_DISTRIBUTION = "kafka-rlm"

# The timeout is short, because trims wait for the brokers' response.
_SHARE_GROUPS_TIMEOUT_MS = 2_000


def build_manager(config: Config, listener: ApiListener, metrics: Metrics) -> BrokerManager:
    """Build the manager of the broker whose log dirs the configuration names.

    Sends nothing to the cluster. Raises InvalidConfigError if a setting or a file is invalid.
    """
    external = open_external_systems(
        config, SystemClock(), metrics.count_plugin_error, metrics.count_store_request
    )
    return compose(config, external, listener, metrics)


def compose(
    config: Config, external: ExternalSystems, listener: ApiListener, metrics: Metrics
) -> BrokerManager:
    """Compose a manager from its parts. Call its `start` to begin the work."""
    clock = SystemClock()
    metadata = open_metadata_manager(
        config.metadata,
        external.metadata_topic,
        open_metadata_cache(config.metadata, config.host.state_dir / "manager" / "cache"),
        clock,
        ManagerSettings(
            follows_all=False,
            consume_wait_ms=config.metadata.consume_wait_ms,
            tombstone_grace_ms=config.manager.orphan_grace_ms,
        ),
        metrics.count_plugin_error,
    )
    metrics.registry.register(MetadataCollector(metadata.metrics))
    storage = observed_store(external.storage, config.storage, metrics, clock)
    ports = Ports(
        broker=external.broker,
        source=external.source,
        storage=open_storage_manager(
            config.storage,
            storage,
            ObjectOrigin(
                software_version=f"{_DISTRIBUTION}/{version(_DISTRIBUTION)}",
                cluster_id=external.identity.cluster_id,
            ),
            metrics.count_plugin_error,
        ),
        metadata=metadata,
        dead_letters=external.dead_letters,
        share_groups=ClusterShareGroups(
            open_bootstrap(config.cluster, clock, timeout_ms=_SHARE_GROUPS_TIMEOUT_MS),
            clock,
            accepts_hidden=config.deleting.accept_hidden_share_groups,
        ),
        clock=clock,
        new_id=fresh_id,
        witness=_witness(config, storage, metadata),
    )
    return _manage(config, ports, metadata, external, listener, metrics)


def _manage(
    config: Config,
    ports: Ports,
    metadata: TopicBasedRemoteLogMetadataManager,
    external: ExternalSystems,
    listener: ApiListener,
    metrics: Metrics,
) -> BrokerManager:
    lanes = open_pools(config)
    access = open_command_access(config, external.identity, listener, metadata, ports.clock)
    description = _description(config, external.identity, access.incarnation)
    leadership = _leadership(ports, description, access.incarnation, lanes)
    segments = open_segment_lanes(config, ports, lanes, metrics)
    expirer = _expirer(config, ports, metrics)
    views = _views(config, ports, leadership, segments)
    cycle = _cycle(
        config,
        ports,
        metrics,
        lanes,
        leadership=leadership,
        views=views,
        segments=segments,
        expirer=expirer,
    )
    return BrokerManager(
        broker=ports.broker,
        metadata=metadata,
        store_check=StoreCheck(external.storage, key_prefix=config.storage.key_prefix),
        retention=_retention_keeper(config, ports, metrics),
        cycle=cycle,
        views=views,
        deletions=StreamedDeletion(metadata, leadership),
        store_loops=open_store_loops(
            config,
            ports,
            external,
            metrics,
            lanes,
            leadership=leadership,
            expirer=expirer,
            streams=StreamWatch(
                ports, streamed=cycle.streamed, copies=segments.copies, streams=segments.streams
            ),
            incarnation=access.incarnation,
        ),
        heartbeat=Heartbeat(metadata, description, ports.new_id),
        access=access,
        gauges=ManagerGauges(metrics, segments.copies, segments.streams, segments.merges),
        lanes=lanes,
        cycle_interval_ms=config.manager.task_interval_ms,
        heartbeat_interval_ms=config.process.heartbeat_interval_ms,
        metrics=metrics,
        clock=ports.clock,
        resources=_closing(ports, metadata),
    )


def _cycle(
    config: Config,
    ports: Ports,
    metrics: Metrics,
    lanes: ManagerLanes,
    *,
    leadership: Leadership,
    views: PartitionViews,
    segments: SegmentLanes,
    expirer: Expirer,
) -> LeaderCycle:
    return LeaderCycle(
        ports,
        leadership=leadership,
        views=views,
        copies=segments.copies,
        repairs=segments.repairs,
        streams=segments.streams,
        merges=segments.merges,
        expiries=ExpiryLanes(
            ports,
            lanes=Lanes(lanes.expiry_pool, "expiry"),
            expirer=expirer,
            stopping=lanes.stopping,
        ),
        trimmer=Trimmer(ports, plan_max_age_ms=config.manager.trim_plan_max_age_ms),
        metrics=metrics,
        outages=_outages(config, ports, metrics),
    )


def _witness(
    config: Config, storage: ChunkStorage, metadata: RemoteLogMetadataManager
) -> StoreWitness | None:
    """Return the check for a wrong store; None if it is disabled or a plug-in stores segments."""
    if not config.scrubbing.looks_for_stored or config.storage.segments().manager is not None:
        return None
    return StoreWitness(storage, metadata)


def _leadership(
    ports: Ports, description: ProcessDescription, incarnation: UUID, lanes: ManagerLanes
) -> Leadership:
    def alone() -> bool:
        registered, now_ms = dated_registrations(ports.metadata)
        return not live_rivals(
            registered,
            broker_id=description.broker_id,
            process_id=description.process_id,
            broker_ms=now_ms,
        )

    return Leadership(
        ports,
        incarnation=incarnation,
        alone=alone,
        executor=lanes.claim_pool,
    )


def _views(
    config: Config, ports: Ports, leadership: Leadership, segments: SegmentLanes
) -> PartitionViews:
    lanes = (segments.copies, segments.repairs, segments.streams, segments.merges)
    return PartitionViews(ports, leadership=leadership, lanes=lanes, limits=_limits(config))


def _expirer(config: Config, ports: Ports, metrics: Metrics) -> Expirer:
    return Expirer(
        ports,
        metrics=metrics,
        max_attempts=config.manager.delete_max_attempts,
        max_failing=config.deleting.max_retrying_segments,
        first_pause_ms=config.manager.task_interval_ms,
    )


def _closing(ports: Ports, metadata: TopicBasedRemoteLogMetadataManager) -> ExitStack:
    """Return a stack that closes the broker, dead letters, store and metadata, in this order."""
    resources = ExitStack()
    resources.callback(metadata.close)
    resources.callback(ports.storage.close)
    resources.callback(ports.dead_letters.close)
    resources.callback(ports.broker.close)
    return resources


def _retention_keeper(config: Config, ports: Ports, metrics: Metrics) -> RetentionKeeper:
    topics = ClusterTopicAdmin(open_bootstrap(config.cluster, ports.clock))
    policies = PolicyWriter(ports.metadata, ports.new_id)
    return RetentionKeeper(
        Activation(policies, BrokerRetention(topics, ports.clock)),
        topics=topics,
        metadata=ports.metadata,
        node_id=ports.broker.node_id,
        reassert=config.manager.retention_reassert,
        alarm=lambda topic: metrics.broker_retention_limited.labels(topic).inc(),
    )


def _description(config: Config, identity: BrokerIdentity, incarnation: UUID) -> ProcessDescription:
    """Describe this process. All its runs with the same state directory share a registration."""
    own_id = state_id(config.host.state_dir, fresh_id)
    return ProcessDescription(
        process_id=uuid5(own_id, f"{identity.cluster_id}/{ProcessRole.MANAGER.name}"),
        role=ProcessRole.MANAGER,
        broker_id=identity.node_id,
        heartbeat_interval_ms=config.process.heartbeat_interval_ms,
        version=version(_DISTRIBUTION),
        host=read_host_identity(),
        incarnation=incarnation,
        serves_https=config.rest_tls.is_on,
        file_defaults=registered_defaults(config),
    )


def _outages(config: Config, ports: Ports, metrics: Metrics) -> OutageWatch:
    return OutageWatch(
        LogDirDisks(config.host.log_dirs),
        ports.clock,
        limits=OutageLimits(
            disk_threshold_percent=config.copying.disk_threshold_percent,
            shed_interval_ms=config.copying.shed_interval_ms,
        ),
        metrics=metrics,
    )


def _limits(config: Config) -> PolicyLimits:
    return PolicyLimits(
        local_trim_margin_bytes=config.manager.trim_margin_bytes,
        local_trim_min_age_ms=config.manager.trim_min_age_ms,
        local_trim_deletion_lag_ms=config.deleting.trim_lag_ms,
        orphan_grace_ms=config.manager.orphan_grace_ms,
        unreferenced_grace_ms=config.deleting.unreferenced_grace_ms,
        expiry_max_percent=config.deleting.expiry_max_percent,
        should_hold_after_loss=config.deleting.hold_after_loss,
        idle_copy_ms=config.copying.idle_ms,
        offload=config.offloading.settings(),
        merges_streams=config.offloading.merges_streams,
        can_shed=not has_plugin(config),  # A plug-in's error does not prove an outage.
    )
