"""Builds the manager's loops that need the store; each runs on its own thread.

removal      deletes the objects of deleted topics
originals    mirrors the originals of topics to the store
policies     applies policy levels to topics
streams      finds partitions whose stream is due
anomalies    checks the objects that are recorded as missing or corrupt
scrub        checks all stored objects for damage
"""

from __future__ import annotations

import secrets
from functools import partial
from uuid import UUID

from rlm.app.broker_manager import StoreLoop
from rlm.app.manager_lanes import ManagerLanes
from rlm.broker.topics.deleted_topics import find_deleted_topics
from rlm.broker.topics.topic_admin import ClusterTopicAdmin
from rlm.config.load import Config
from rlm.metrics.metrics import Metrics
from rlm.process.scrub_pass_number import StoredScrubPassNumber
from rlm.source.meta_properties import BrokerIdentity
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.cycle.stream_watch import WATCH_INTERVAL_MS, StreamWatch
from rlm.tasks.deleting.expirer import Expirer
from rlm.tasks.deleting.topic_removal import TopicRemoval
from rlm.tasks.integrity.anomaly_check import AnomalyCheck
from rlm.tasks.integrity.scrub import Scrub, ScrubLimits
from rlm.tasks.leadership.leadership import Leadership
from rlm.topics.inheritance import PolicyInheritance
from rlm.topics.level_effects import LevelEffects
from rlm.topics.originals_mirror import OriginalsMirror, StoredOriginals
from rlm.topics.policy_writer import PolicyWriter
from rlm.worker.cluster_access import open_bootstrap, own_topics
from rlm.worker.external import ExternalSystems
from rlm.worker.file_defaults import file_defaults
from rlm.worker.store_access import open_stored_originals

# The interval is short, because each run checks only what the rate has allowed since the last one.
_SCRUB_STEP_MS = 1_000

# The scrub and the check of damaged objects share one read rate.
_CHECKS_AT_ONCE = 2


def open_store_loops(  # noqa: PLR0913 - one for each part of the work
    config: Config,
    ports: Ports,
    external: ExternalSystems,
    metrics: Metrics,
    lanes: ManagerLanes,
    *,
    leadership: Leadership,
    expirer: Expirer,
    streams: StreamWatch,
    incarnation: UUID,
) -> tuple[StoreLoop, ...]:
    """Open all loops that need the store. `incarnation` is the id of this run of the manager."""
    originals = open_stored_originals(config.storage, external.storage)
    removal = _topic_removal(
        config, ports, external.identity, metrics, lanes, expirer, originals, incarnation
    )
    mirror = OriginalsMirror(originals, metadata=ports.metadata, broker=ports.broker)
    throttle = _check_throttle(config, ports)
    check = AnomalyCheck(ports, led=leadership.led, stopping=lanes.stopping, throttle=throttle)
    scrub = _scrub(config, ports, lanes, leadership, metrics, throttle)
    inheritance = _inheritance(config, ports, originals)
    interval_ms = config.manager.task_interval_ms
    return (
        StoreLoop(name="removal", work=removal, interval_ms=interval_ms),
        StoreLoop(name="originals", work=mirror, interval_ms=interval_ms),
        StoreLoop(name="policies", work=inheritance, interval_ms=interval_ms),
        StoreLoop(name="anomalies", work=check, interval_ms=interval_ms),
        StoreLoop(name="streams", work=streams, interval_ms=WATCH_INTERVAL_MS),
        StoreLoop(name="scrub", work=scrub, interval_ms=_SCRUB_STEP_MS),
    )


def _topic_removal(
    config: Config,
    ports: Ports,
    identity: BrokerIdentity,
    metrics: Metrics,
    lanes: ManagerLanes,
    expirer: Expirer,
    originals: StoredOriginals,
    incarnation: UUID,
) -> TopicRemoval:
    bootstrap = open_bootstrap(config.cluster, ports.clock)
    return TopicRemoval(
        ports,
        find_deleted=partial(find_deleted_topics, bootstrap, cluster_id=identity.cluster_id),
        expirer=expirer,
        lanes=Lanes(lanes.expiry_pool, "removal"),
        stopping=lanes.stopping,
        incarnation=incarnation,
        drop_originals=originals.drop,
        metrics=metrics,
        grace_ms=config.deleting.topic_grace_ms,
        orphan_grace_ms=config.manager.orphan_grace_ms,
    )


def _inheritance(config: Config, ports: Ports, originals: StoredOriginals) -> PolicyInheritance:
    topics = ClusterTopicAdmin(open_bootstrap(config.cluster, ports.clock))
    return PolicyInheritance(
        LevelEffects(
            topics,
            recall=originals.of_topic,
            own_topics=own_topics(config.metadata, config.manager),
            managers=file_defaults(config),
        ),
        PolicyWriter(ports.metadata, ports.new_id),
        topics=topics,
        metadata=ports.metadata,
        node_id=ports.broker.node_id,
    )


def _check_throttle(config: Config, ports: Ports) -> CopyThrottle:
    """Return the throttle that the scrub and the check of damaged objects share."""
    return CopyThrottle(
        ports.clock,
        bytes_per_second=config.scrubbing.read_bytes_per_second,
        sharers=_CHECKS_AT_ONCE,
        waited=lambda _: None,
    )


def _scrub(
    config: Config,
    ports: Ports,
    lanes: ManagerLanes,
    leadership: Leadership,
    metrics: Metrics,
    throttle: CopyThrottle,
) -> Scrub:
    settings = config.scrubbing
    return Scrub(
        ports,
        led=leadership.led_partitions,
        limits=ScrubLimits(
            interval_ms=settings.interval_ms,
            segments_per_second=settings.segments_per_second,
            read_percent_per_day=settings.read_percent_per_day,
        ),
        metrics=metrics,
        stopping=lanes.stopping,
        throttle=throttle,
        passes=StoredScrubPassNumber(
            config.host.state_dir / "manager" / "scrub_pass", secrets.randbelow
        ),
        pick=secrets.randbelow,
    )
