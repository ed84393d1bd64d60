"""The gateway's composition root: a configuration becomes the objects that serve clients."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import version

from rlm.broker.bootstrap import Bootstrap
from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.gateway.app.cluster_view import LiveFacts
from rlm.gateway.app.endpoints_setup import Ground, Stand, identity_of_host, take_stand
from rlm.gateway.app.limits import read_turns, server_limits, session_limits
from rlm.gateway.app.metrics import GatewayMetrics, GatewaySources
from rlm.gateway.app.remote_tier import GatewayTier, open_tier
from rlm.gateway.app.security import note_host_acls, open_tls
from rlm.gateway.app.worker import GatewayWork, GatewayWorker
from rlm.gateway.endpoints.checked_front import CheckedFront
from rlm.gateway.endpoints.front import Front
from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.remote_log_bounds import MetadataTierView
from rlm.gateway.listener.server import GatewayParts
from rlm.gateway.listener.server_thread import ServerThread
from rlm.gateway.relay.rewrite_pools import RewritePools
from rlm.gateway.session.session_state import SessionParts
from rlm.metrics.metadata import MetadataCollector
from rlm.metrics.metrics import Metrics
from rlm.policy.peers.other_hosts import HostIdentity
from rlm.process.host_identity import OwnAddresses, read_host_identity
from rlm.tasks.leadership.heartbeat import Heartbeat, ProcessCard
from rlm.worker.external import open_bootstrap, open_chunk_storage
from rlm.worker.fresh_id import fresh_id
from rlmm.events.processes import ProcessRole

_END_CONNECTIONS_MS = 6_000


def build_gateway(
    config: Config,
    listener: socket.socket,
    http_address: HostPort,
    metrics: Metrics,
    *,
    worker: int = 1,
) -> GatewayWorker:
    """The gateway of the broker whose log dirs the configuration names; of all, if it names none.

    `worker` tells the processes of one gateway apart, from 1 on. Raises InvalidConfigError for what
    files show at once. Nothing has been asked of the cluster.
    """
    identity = identity_of_host(config)
    tier = open_tier(config, metrics, open_chunk_storage(config.storage), worker)
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
    host = read_host_identity()
    front = CheckedFront(stand.front, stand.address, stand.own, host, OwnAddresses(tier.clock).has)
    facts = _facts(tier, front, cluster)
    parts = _parts(config, tier, facts, front, metrics)
    serving = ExitStack()
    serving.callback(server.stop, timeout_ms=_END_CONNECTIONS_MS)
    card = _card(config, stand, http_address, host)
    heartbeat = Heartbeat(tier.metadata, card, fresh_id, applied=facts.applied)
    return GatewayWorker(
        work=GatewayWork(
            confirm_cluster=lambda: _confirm_cluster(stand, cluster, metrics),
            begin_metadata=tier.metadata.start,
            begin_serving=lambda: server.start(parts),
            readiness=tier.metadata.readiness,
            refresh=facts.refresh,
            address_problem=lambda: front.problem,
            broker_address=lambda: front.broker_address,
            gateway_address=lambda: front.address,
            heartbeat=heartbeat.step,
            clean_caches=tier.cleaner.step,
            report_anomalies=tier.reporter.step,
            has_ended=lambda: server.has_ended,
        ),
        heartbeat_interval_ms=config.gateway.heartbeat_interval_ms,
        clean_interval_ms=config.manager.task_interval_ms,
        failed=_count_failures(metrics),
        clock=tier.clock,
        serving=serving,
        resources=tier.resources,
    )


def _facts(tier: GatewayTier, front: Front, cluster: Bootstrap) -> LiveFacts:
    return LiveFacts(
        front,
        cluster=cluster,
        metadata=tier.metadata,
        positions=lambda: tier.metadata.metrics().positions,
        timestamps=tier.timestamps,
        answering=tier.answering,
        new_id=fresh_id,
        clock=tier.clock,
    )


def _parts(
    config: Config, tier: GatewayTier, facts: LiveFacts, front: CheckedFront, metrics: Metrics
) -> GatewayParts:
    tls = open_tls(config, tier.clock, metrics)
    parts = GatewayParts(
        session=SessionParts(
            context=facts.context,
            view=MetadataTierView(tier.metadata, tier.clock),
            local_starts=LocalStarts(),
            clock=tier.clock,
            limits=session_limits(config),
        ),
        tier=tier.reader,
        pool=tier.pools.asks,
        rewrite_pools=RewritePools(store=tier.pools.look_ups, others=tier.pools.rewrites),
        turns=read_turns(config, tier.clock),
        is_pressed=lambda: tier.cache.state().waiting_count > 0,
        is_refusing=lambda: front.problem is not None,
        failed=_count_failures(metrics),
        client_tls=tls.towards_clients,
        upstream_tls=tls.towards_brokers,
        limits=server_limits(config),
    )
    sources = GatewaySources(
        counts=parts.counts,
        turns=parts.turns,
        anomalies=tier.anomalies.counts,
        cache=tier.cache.state,
        cache_budget_bytes=config.gateway.chunk_cache_bytes,
    )
    metrics.registry.register(GatewayMetrics(sources))
    metrics.registry.register(MetadataCollector(tier.metadata.metrics))
    return parts


def _count_failures(metrics: Metrics) -> Callable[[str, Exception], None]:
    return lambda task, error: metrics.task_failures.labels(task, type(error).__name__).inc()


def _confirm_cluster(stand: Stand, cluster: Bootstrap, metrics: Metrics) -> None:
    stand.confirm()
    note_host_acls(cluster, metrics)


def _card(config: Config, stand: Stand, http_address: HostPort, host: HostIdentity) -> ProcessCard:
    return ProcessCard(
        process_id=stand.process_id,
        role=ProcessRole.GATEWAY,
        broker_id=stand.broker_id,
        # Of `rlm run`, where only the supervisor asks: other hosts cannot reach it.
        http_address="" if http_address.is_loopback else str(http_address),
        heartbeat_interval_ms=config.gateway.heartbeat_interval_ms,
        version=version("kafka-rlm"),
        host=host,
    )
