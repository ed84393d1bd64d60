"""Routes clients to one broker, and redirects them to other gateways for other brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rlm.broker.cluster import ClusterView
from rlm.config.values import HostPort
from rlm.gateway.model.advertised_brokers import GatewayTopology, topology_of
from rlmm.events.registration import Registration


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleBrokerSettings:
    """Represents the settings of SingleBrokerRouting.

    `own` returns this gateway's address; call it only after the cluster's first response. `fixed`
    and `direct_if_unserved` are as in `topology_of`.
    """

    node_id: int
    own: Callable[[], HostPort]
    fixed: Mapping[int, HostPort] = field(default_factory=dict)
    direct_if_unserved: bool = False


class SingleBrokerRouting:
    """Represents the routing of a gateway for one broker.

    Call `update` and `topology` from one thread.
    """

    def __init__(self, settings: SingleBrokerSettings) -> None:
        self._settings = settings
        self._upstreams: tuple[HostPort, ...] = ()

    def update(self, view: ClusterView) -> None:
        broker = view.broker(self._settings.node_id)
        self._upstreams = (HostPort(host=broker.host, port=broker.port),)

    def upstreams(self) -> tuple[HostPort, ...]:
        """Return the broker's current or last address; empty before `update`. Thread-safe."""
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
