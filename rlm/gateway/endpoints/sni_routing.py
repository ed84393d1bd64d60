"""The front of a gateway that stands for a whole cluster behind one address, by TLS.

Clients are given a name of its own for each broker and the same port for all; the name that a
client asks for in its handshake tells which broker it wants. Any other name begins at any broker.
"""

from __future__ import annotations

from collections.abc import Iterable

from rlm.broker.cluster import ClusterView
from rlm.config.values import HostPort
from rlm.gateway.endpoints.broker_addresses import BrokerAddresses
from rlm.gateway.endpoints.server_names import ServerNames
from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlmm.spi import Registration


class SniRouting:
    """`update` and `topology` are one thread's; the upstreams are thread-safe."""

    def __init__(
        self, names: ServerNames, advertised: HostPort, *, direct_if_unserved: bool = False
    ) -> None:
        """`advertised` is where clients find the gateway; its port is that of all brokers."""
        self._names = names
        self._advertised = advertised
        self._direct_if_unserved = direct_if_unserved
        self._addresses = BrokerAddresses()

    def update(self, view: ClusterView) -> None:
        self._addresses.update(view)

    def topology(
        self, registrations: Iterable[Registration], broker_time_ms: int
    ) -> GatewayTopology:
        port = self._advertised.port
        return GatewayTopology(
            live={
                node_id: HostPort(host=self._names.name_of(node_id), port=port)
                for node_id in self._addresses.known
            },
            direct_if_unserved=self._direct_if_unserved,
            elsewhere=self._advertised,
        )

    def any_upstreams(self) -> tuple[HostPort, ...]:
        """For those who name no broker: all live ones, another one first each time."""
        return self._addresses.any()

    def upstreams_of_name(self, server_name: str) -> tuple[HostPort, ...]:
        """For those who ask for a name."""
        node_id = self._names.node_of(server_name)
        return self._addresses.any() if node_id is None else self._addresses.of(node_id)
