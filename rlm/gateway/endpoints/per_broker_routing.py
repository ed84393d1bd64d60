"""Opens and closes the endpoints of a gateway for a whole cluster: one for each broker.

The bootstrap endpoint, which leads to any broker, stays open. The gateway opens a broker's endpoint
when it first sees the broker, and closes the endpoint 10 minutes after the broker disappeared.
Until then, the gateway disconnects clients of the absent broker. At each update, the gateway
retries the endpoints that it could not open. It redirects clients of an unserved broker to the
bootstrap endpoint, where they request metadata again. With `direct_if_unserved`, such clients get
the broker's own address instead.

A gateway for a whole cluster never redirects clients to gateways of single brokers.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from rlm.broker.cluster import ClusterView
from rlm.config.values import HostPort
from rlm.gateway.endpoints.broker_addresses import BrokerAddresses
from rlm.gateway.endpoints.endpoint import Endpoint
from rlm.gateway.endpoints.endpoint_addresses import EndpointAddresses
from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlmm.events.registration import Registration
from rsm.segment.clock import Clock
from rsm.segment.errors import TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_GONE_MS = 600_000


class EndpointListener(Protocol):
    """Accepts clients at endpoints (rlm.gateway.listener.server_thread)."""

    def open(self, endpoint: Endpoint) -> None:
        """Accept clients at an endpoint, and own its socket, which it closes on failure.

        Raises RetriableError if it cannot accept clients.
        """

    def close(self, endpoint: Endpoint) -> None:
        """Stop accepting clients at an endpoint; its open connections continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerBrokerSettings:
    """Represents the settings of PerBrokerRouting.

    `plan` is called only after the cluster has answered. `listen` binds a socket, and raises
    InvalidConfigError if it cannot. Each update calls `unserved` with the number of unserved
    brokers.
    """

    plan: Callable[[], EndpointAddresses]
    listen: Callable[[HostPort], socket.socket]
    unserved: Callable[[int], object]
    direct_if_unserved: bool = False


@dataclass(slots=True, kw_only=True)
class _BrokerEndpoint:
    endpoint: Endpoint
    address: HostPort
    seen_ms: int


class PerBrokerRouting:
    """Represents the routing of a gateway with one endpoint for each broker.

    Call `update` and `topology` from one thread; the upstreams are thread-safe.
    """

    def __init__(
        self, settings: PerBrokerSettings, endpoint_listener: EndpointListener, clock: Clock
    ) -> None:
        self._settings = settings
        self._endpoint_listener = endpoint_listener
        self._clock = clock
        self._endpoints: dict[int, _BrokerEndpoint] = {}
        self._problems: dict[int, str] = {}
        self._addresses = BrokerAddresses()

    def update(self, view: ClusterView) -> None:
        self._addresses.update(view)
        now_ms, live = self._clock.monotonic_ms(), self._addresses.live
        for node_id in sorted(live):
            if node_id in self._endpoints:
                self._endpoints[node_id].seen_ms = now_ms
            else:
                self._open(node_id, now_ms)
        self._close_gone(now_ms)
        self._problems = {n: problem for n, problem in self._problems.items() if n in live}
        self._settings.unserved(len(self._problems))

    def topology(
        self, registrations: Iterable[Registration], broker_time_ms: int
    ) -> GatewayTopology:
        return GatewayTopology(
            live={node_id: each.address for node_id, each in self._endpoints.items()},
            direct_if_unserved=self._settings.direct_if_unserved,
            elsewhere=self._settings.plan().advertised,
        )

    def any_upstreams(self) -> tuple[HostPort, ...]:
        """Return the addresses of all live brokers. Each call starts with the next broker."""
        return self._addresses.rotate()

    def _open(self, node_id: int, now_ms: int) -> None:
        plan = self._settings.plan()
        try:
            listener = self._settings.listen(plan.listener_of(node_id))
            endpoint = Endpoint(
                name=f"broker-{node_id}",
                listener=listener,
                upstreams=partial(self._addresses.of, node_id),
            )
            try:
                address = plan.address_of(node_id, bound_port=listener.getsockname()[1])
            except TieredStorageError:
                listener.close()
                raise
            self._endpoint_listener.open(endpoint)
        except TieredStorageError as error:
            self._note(node_id, str(error))
            return
        self._problems.pop(node_id, None)
        self._endpoints[node_id] = _BrokerEndpoint(
            endpoint=endpoint, address=address, seen_ms=now_ms
        )
        _log.info(LogLine("opened an endpoint for a broker", node_id=node_id, address=str(address)))

    def _close_gone(self, now_ms: int) -> None:
        for node_id, each in tuple(self._endpoints.items()):
            if now_ms - each.seen_ms >= _GONE_MS:
                self._endpoint_listener.close(each.endpoint)
                del self._endpoints[node_id]
                what = "closed the endpoint of a broker that left the cluster"
                _log.info(LogLine(what, node_id=node_id))

    def _note(self, node_id: int, problem: str) -> None:
        if self._problems.get(node_id) != problem:
            what = "cannot open an endpoint for a broker"
            _log.warning(LogLine(what, node_id=node_id, reason=problem))
        self._problems[node_id] = problem
