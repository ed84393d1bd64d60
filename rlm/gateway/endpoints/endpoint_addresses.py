"""Computes the listening and the advertised address of each broker's endpoint. Pure.

If `gateway.node.listeners` is not set, each broker's endpoint has the host of the bootstrap
endpoint. Its port is the bootstrap endpoint's port + 1 + node id, so operators can compute all
ports, for example for firewall rules.
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
    """Represents the addresses of a gateway's endpoints.

    `bootstrap` is the bound address of the bootstrap endpoint; `advertised` is the address that
    clients get for that endpoint. `listeners` maps node ids to addresses to listen on; if it is
    not empty, other brokers get no endpoint. `addresses` overrides the advertised addresses by
    node id.
    """

    bootstrap: HostPort
    advertised: HostPort
    listeners: Mapping[int, HostPort] = field(default_factory=dict)
    addresses: Mapping[int, HostPort] = field(default_factory=dict)

    def listener_of(self, node_id: int) -> HostPort:
        """Return the address to listen on for a broker; raise InvalidConfigError if it has none."""
        if not self.listeners:
            return _address_after(self.bootstrap, node_id)
        found = self.listeners.get(node_id)
        if found is None:
            raise InvalidConfigError(
                "cannot open the broker's endpoint: it has no address to listen on",
                key=LISTENERS_KEY,
                node_id=node_id,
                advice="Map the broker to an address",
            )
        return found

    def address_of(self, node_id: int, *, bound_port: int) -> HostPort:
        """Return the address that clients get for a broker.

        `bound_port` is the port that the broker's endpoint listens on. Raises InvalidConfigError if
        the computed port is above 65535.
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
            "the port of the broker's endpoint is invalid: it must be at most 65535",
            key=LISTENERS_KEY,
            node_id=node_id,
            port=port,
            advice="Map the broker to an address",
        )
    return HostPort(host=first.host, port=port)
