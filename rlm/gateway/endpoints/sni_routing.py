"""Routes clients to the brokers of a whole cluster at one TLS address, by server name (SNI).

Clients get a different host name for each broker, and the same port for all. The server name in a
client's TLS handshake selects the broker. If the name has another form or is missing, the client
reaches any live broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rlm.broker.cluster import ClusterView
from rlm.config.values import HostPort
from rlm.gateway.endpoints.broker_addresses import BrokerAddresses
from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlmm.events.registration import Registration

_NODE = "{node}"
_LAST_NODE_ID = 2**31 - 1


class ServerNames:
    """Converts between node ids and the server names of TLS handshakes (SNI, RFC 6066). Pure.

    `template` contains `{node}` once, for example `broker-{node}.kafka.example.com`.
    """

    def __init__(self, template: str) -> None:
        self._before, self._after = template.split(_NODE)
        number = "(0|[1-9][0-9]{0,9})"
        self._pattern = re.compile(
            re.escape(self._before) + number + re.escape(self._after), re.IGNORECASE
        )

    def name_of(self, node_id: int) -> str:
        """Return the server name of a broker."""
        return f"{self._before}{node_id}{self._after}"

    def node_of(self, server_name: str) -> int | None:
        """Return the node id in a server name, ignoring case; None if it contains no valid id."""
        match = self._pattern.fullmatch(server_name)
        node_id = None if match is None else int(match[1])
        return None if node_id is None or node_id > _LAST_NODE_ID else node_id


class SniRouting:
    """Represents the routing by server name.

    Call `update` and `topology` from one thread; the upstreams are thread-safe.
    """

    def __init__(
        self, names: ServerNames, advertised: HostPort, *, direct_if_unserved: bool = False
    ) -> None:
        """`advertised` is the gateway's address for clients; its port applies to all brokers."""
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
        """Return the addresses of all live brokers. Each call starts with the next broker."""
        return self._addresses.rotate()

    def upstreams_of_name(self, server_name: str) -> tuple[HostPort, ...]:
        """Return the upstreams of a server name; all live brokers if it contains no valid node id.

        Returns an empty tuple if the broker is unknown, or if another broker now uses its address.
        """
        node_id = self._names.node_of(server_name)
        return self._addresses.rotate() if node_id is None else self._addresses.of(node_id)
