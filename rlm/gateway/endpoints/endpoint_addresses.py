"""Computes the listening and the advertised address of each broker's endpoint. Pure.

Without `gateway.node.listeners`, a broker's endpoint has the bootstrap endpoint's host, and as port
the bootstrap endpoint's port + 1 + node id. Operators can thus compute all ports, for example for
firewall rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlm.config.values import HostPort
from rsm.segment.errors import InvalidConfigError

LISTENERS_KEY = "gateway.node.listeners"
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAddresses:
    """The addresses of a gateway's endpoints.

    `bootstrap`: the bound address of the bootstrap endpoint. `advertised`: the address that
    clients get for it. `listeners` maps node ids to addresses to listen on; if it is not empty,
    other brokers get no endpoint. `addresses` overrides the advertised addresses by node id.
    """

    bootstrap: HostPort
    advertised: HostPort
    listeners: Mapping[int, HostPort] = field(default_factory=dict)
    addresses: Mapping[int, HostPort] = field(default_factory=dict)

    def listener_of(self, node_id: int) -> HostPort:
        """Return the address to listen on for a broker. Raises InvalidConfigError without one."""
        if not self.listeners:
            return _address_after(self.bootstrap, node_id)
        found = self.listeners.get(node_id)
        if found is None:
            raise InvalidConfigError(
                "the gateway has no address to listen on for the broker",
                key=LISTENERS_KEY,
                node_id=node_id,
                advice="Map the broker to an address",
            )
        return found

    def address_of(self, node_id: int, *, bound_port: int) -> HostPort:
        """Return the address that clients get for a broker. Raises InvalidConfigError.

        `bound_port`: the port that the broker's endpoint listens on.
        """
        if node_id in self.addresses:
            return self.addresses[node_id]
        if not self.listeners:
            return _address_after(self.advertised, node_id)
        return HostPort(host=self.advertised.host, port=bound_port)


def _address_after(first: HostPort, node_id: int) -> HostPort:
    port = first.port + 1 + node_id
    if port > _LAST_PORT:
        raise InvalidConfigError(
            "the port of the broker's endpoint is above 65535",
            key=LISTENERS_KEY,
            node_id=node_id,
            port=port,
            advice="Map the broker to an address",
        )
    return HostPort(host=first.host, port=port)
