"""What of the cluster a gateway stands for, and where its clients find whom.

one broker         `SingleBrokerRouting`: a gateway beside its broker; the others have their own
the whole cluster  `rlm.gateway.endpoints.endpoint_registry`: an endpoint for each broker
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rlm.broker.cluster import ClusterView
from rlm.config.values import HostPort
from rlm.gateway.model.advertised_brokers import GatewayTopology, topology_of
from rlmm.spi import Registration


class Routing(Protocol):
    """`update` and `topology` are one thread's."""

    def update(self, view: ClusterView) -> None:
        """Take what the cluster says of its brokers. NotFoundError if there is none to serve by."""

    def topology(
        self, registrations: Iterable[Registration], broker_time_ms: int
    ) -> GatewayTopology:
        """Where clients are led, as of now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleBrokerSettings:
    """Which broker a gateway is beside, and where clients are to find whom.

    `own` is where this gateway is found, known once the cluster is heard; `fixed` and
    `direct_if_unserved` as in `topology_of`.
    """

    node_id: int
    own: Callable[[], HostPort]
    fixed: Mapping[int, HostPort] = field(default_factory=dict)
    direct_if_unserved: bool = False


class SingleBrokerRouting:
    """Of a gateway beside a broker; clients are led to the other brokers' gateways."""

    def __init__(self, settings: SingleBrokerSettings) -> None:
        self._settings = settings
        self._upstreams: tuple[HostPort, ...] = ()

    def update(self, view: ClusterView) -> None:
        broker = view.broker(self._settings.node_id)
        self._upstreams = (HostPort(host=broker.host, port=broker.port),)

    def upstreams(self) -> tuple[HostPort, ...]:
        """Where the broker is; the last known while it is away. Thread-safe."""
        return self._upstreams

    def topology(
        self, registrations: Iterable[Registration], broker_time_ms: int
    ) -> GatewayTopology:
        settings = self._settings
        return topology_of(
            registrations,
            broker_time_ms=broker_time_ms,
            own={settings.node_id: settings.own()},
            fixed=settings.fixed,
            direct_if_unserved=settings.direct_if_unserved,
        )
