"""Where the endpoint of each broker listens, and the address that clients get. Pure.

Without a map the endpoints follow the bootstrap endpoint: its port + 1 + node id, on the same host.
So clients that know one address, and whoever opens a firewall for them, know the others.
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
    """`bootstrap` is the bound address of the bootstrap endpoint, `advertised` what clients get.

    `listeners` maps node ids to addresses to listen on, all that there are if it is not empty;
    `addresses` maps them to what clients are told instead of what would follow.
    """

    bootstrap: HostPort
    advertised: HostPort
    listeners: Mapping[int, HostPort] = field(default_factory=dict)
    addresses: Mapping[int, HostPort] = field(default_factory=dict)

    def listener_of(self, node_id: int) -> HostPort:
        """Where to listen for a broker's clients. InvalidConfigError if there is no place."""
        if not self.listeners:
            return _behind(self.bootstrap, node_id)
        found = self.listeners.get(node_id)
        if found is None:
            raise InvalidConfigError("broker is not mapped", key=LISTENERS_KEY, node_id=node_id)
        return found

    def address_of(self, node_id: int, *, bound_port: int) -> HostPort:
        """Where clients find the endpoint that listens on `bound_port`. InvalidConfigError."""
        if node_id in self.addresses:
            return self.addresses[node_id]
        if not self.listeners:
            return _behind(self.advertised, node_id)
        return HostPort(host=self.advertised.host, port=bound_port)


def _behind(first: HostPort, node_id: int) -> HostPort:
    port = first.port + 1 + node_id
    if port > _LAST_PORT:
        raise InvalidConfigError(
            "no port is left for the broker: map one", key=LISTENERS_KEY, node_id=node_id, port=port
        )
    return HostPort(host=first.host, port=port)
