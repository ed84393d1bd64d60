"""The routing of a gateway that serves a whole cluster at one TLS address, by server name (SNI).

Clients get a different host name for each broker, all with one port. The server name in a client's
TLS handshake selects the broker. Any other name, or none, selects any live broker.
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
    """The routing by server name.

    Call `update` and `topology` from one thread; the upstreams are thread-safe.
    """

    def __init__(
        self, names: ServerNames, advertised: HostPort, *, direct_if_unserved: bool = False
    ) -> None:
        """`advertised` is the clients' address of the gateway; all brokers get its port."""
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
        """Return all live brokers, starting with a different one at each call."""
        return self._addresses.any()

    def upstreams_of_name(self, server_name: str) -> tuple[HostPort, ...]:
        """Return the upstreams of a server name; all live brokers if it names none."""
        node_id = self._names.node_of(server_name)
        return self._addresses.any() if node_id is None else self._addresses.of(node_id)
