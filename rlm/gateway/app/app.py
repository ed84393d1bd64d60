"""Builds the objects of a gateway process from a configuration (composition root)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version

from rlm.broker.bootstrap import Bootstrap
from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.gateway.app.cluster_view import LiveFacts
from rlm.gateway.app.endpoints_setup import (
    ServingContext,
    ServingMode,
    identity_of_host,
    serving_mode,
)
from rlm.gateway.app.host_acls import note_host_acls
from rlm.gateway.app.limits import read_permits, server_limits, session_limits
from rlm.gateway.app.metrics import GatewayMetrics, GatewaySources
from rlm.gateway.app.remote_tier import GatewayTier, open_tier
from rlm.gateway.app.security import open_tls
from rlm.gateway.app.worker import GatewayWorker
from rlm.gateway.endpoints.checked_routing import CheckedRouting
from rlm.gateway.endpoints.own_address import HttpAddress
from rlm.gateway.endpoints.routing import Routing
from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.remote_log_bounds import MetadataLogBoundsView
from rlm.gateway.listener.server import GatewayParts
from rlm.gateway.listener.server_thread import ServerThread
from rlm.gateway.relay.rewrite_pools import RewritePools
from rlm.gateway.session.session_state import SessionParts
from rlm.metrics.metadata import MetadataCollector
from rlm.metrics.metrics import Metrics
from rlm.policy.peers.other_hosts import HostIdentity
from rlm.process.host_identity import OwnAddresses, read_host_identity
from rlm.tasks.leadership.heartbeat import Heartbeat, ProcessDescription
from rlm.worker.cluster_access import open_bootstrap
from rlm.worker.fresh_id import fresh_id
from rlmm.events.registration import ProcessRole

_END_CONNECTIONS_MS = 6_000


def build_gateway(
    config: Config,
    listener: socket.socket,
    http_bound: HostPort,
    metrics: Metrics,
    *,
    worker: int = 1,
) -> GatewayWorker:
    """Build the gateway of the broker in `log.dirs`; of the whole cluster if it is not set.

    `http_bound`: the address that the gateway's HTTP server is bound to. `worker` numbers the
    processes of one gateway, from 1. Does not contact the cluster. Raises InvalidConfigError if the
    configuration or a file that it names is invalid.
    """
    identity = identity_of_host(config)
    tier = open_tier(config, metrics, worker)
    server = ServerThread()
    cluster = open_bootstrap(config.cluster, tier.clock)
    context = ServingContext(
        config=config,
        identity=identity,
        worker=worker,
        listener=listener,
        cluster=cluster,
        topic=tier.topic,
        endpoint_listener=server,
        clock=tier.clock,
        unserved=metrics.gateway_unserved_brokers.set,
    )
    mode = serving_mode(context)
    host = read_host_identity()
    route = _checked_routing(context, mode, http_bound, host)
    facts = _facts(tier, route, cluster)
    parts = _parts(config, tier, facts, route, metrics)
    serving = ExitStack()
    serving.callback(server.stop, timeout_ms=_END_CONNECTIONS_MS)
    description = _description(config, mode, host)
    heartbeat = Heartbeat(tier.metadata, description, fresh_id, applied=facts.applied)
    return GatewayWorker(
        confirm_cluster=partial(_confirm_cluster, mode, cluster, metrics),
        metadata=tier.metadata,
        facts=facts,
        route=route,
        server=server,
        parts=parts,
        heartbeat=heartbeat,
        cleaner=tier.cleaner,
        reporter=tier.reporter,
        heartbeat_interval_ms=config.gateway.heartbeat_interval_ms,
        clean_interval_ms=config.manager.task_interval_ms,
        failed=_count_failures(metrics),
        clock=tier.clock,
        serving=serving,
        resources=tier.resources,
    )


def _checked_routing(
    context: ServingContext, mode: ServingMode, http_bound: HostPort, host: HostIdentity
) -> CheckedRouting:
    http = HttpAddress(
        http_bound,
        advertised=context.config.process.rest_advertised_listener,
        route=context.route,
    )
    is_own_host = OwnAddresses(context.clock).has
    return CheckedRouting(mode.routing, mode.address, mode.own, host, is_own_host, http=http)


def _facts(tier: GatewayTier, route: Routing, cluster: Bootstrap) -> LiveFacts:
    return LiveFacts(
        route,
        cluster=cluster,
        metadata=tier.metadata,
        positions=lambda: tier.metadata.metrics().positions,
        timestamps=tier.timestamps,
        query_settings=tier.query_settings,
        new_id=fresh_id,
        clock=tier.clock,
    )


def _parts(
    config: Config, tier: GatewayTier, facts: LiveFacts, route: CheckedRouting, metrics: Metrics
) -> GatewayParts:
    tls = open_tls(config, tier.clock, metrics)
    parts = GatewayParts(
        session=SessionParts(
            context=facts.context,
            view=MetadataLogBoundsView(tier.metadata, tier.clock),
            local_starts=LocalStarts(),
            clock=tier.clock,
            limits=session_limits(config),
        ),
        tier=tier.reader,
        pool=tier.pools.fetch_starts,
        rewrite_pools=RewritePools(store=tier.pools.lookups, others=tier.pools.rewrites),
        permits=read_permits(config, tier.clock),
        is_under_memory_pressure=lambda: tier.cache.state().waiting_count > 0,
        is_refusing=lambda: route.problem is not None,
        failed=_count_failures(metrics),
        client_tls=tls.towards_clients,
        upstream_tls=tls.towards_brokers,
        limits=server_limits(config),
    )
    sources = GatewaySources(
        counts=parts.counts,
        permits=parts.permits,
        anomalies=tier.anomalies.counts,
        cache=tier.cache.state,
        cache_budget_bytes=config.gateway.chunk_cache_bytes,
    )
    metrics.registry.register(GatewayMetrics(sources))
    metrics.registry.register(MetadataCollector(tier.metadata.metrics))
    return parts


def _count_failures(metrics: Metrics) -> Callable[[str, BaseException], None]:
    return lambda task, error: metrics.task_failures.labels(task, type(error).__name__).inc()


def _confirm_cluster(mode: ServingMode, cluster: Bootstrap, metrics: Metrics) -> None:
    mode.confirm()
    note_host_acls(cluster, metrics)


def _description(config: Config, mode: ServingMode, host: HostIdentity) -> ProcessDescription:
    return ProcessDescription(
        process_id=mode.process_id,
        role=ProcessRole.GATEWAY,
        broker_id=mode.broker_id,
        heartbeat_interval_ms=config.gateway.heartbeat_interval_ms,
        version=version("kafka-rlm"),
        host=host,
    )
