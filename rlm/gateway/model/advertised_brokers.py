"""GatewayTopology: decides which gateway address clients get for each broker. Pure.

**Skipped data:** a client that bypasses the gateways finds only the local log, resets its offset
and misses the stored records. For a broker without a live gateway, clients therefore get the
address of another live gateway. That gateway's broker refuses their requests, because it is not the
leader, and they request metadata again. If no gateway is live, clients get the last address of the
broker's gateway. They get a broker's own address only with `direct_if_unserved`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from rlm.config.values import HostPort, parse_host_port
from rlmm.events.registration import NO_BROKER, ProcessRole, Registration
from rlmm.registration import is_live


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTopology:
    """Represents the gateways' addresses by node id.

    `live` contains the addresses of live gateways, this process included; `last_known` also those
    of dead gateways. `own` are this process's addresses. `heartbeats_ms` contains the last
    heartbeat of each gateway that is known only from its registration. `elsewhere` is the address
    that a gateway of the whole cluster returns for unserved brokers.
    """

    live: Mapping[int, HostPort]
    last_known: Mapping[int, HostPort] = field(default_factory=dict)
    direct_if_unserved: bool = False
    elsewhere: HostPort | None = None
    own: frozenset[HostPort] = frozenset()
    heartbeats_ms: Mapping[int, int] = field(default_factory=dict)

    def leads_here_instead(self, node_id: int) -> bool:
        """Return whether a broker's clients are redirected here because its gateway is not live."""
        return node_id not in self.live and self.address_of(node_id) in self.own

    def without(self, node_ids: Collection[int]) -> GatewayTopology:
        """Return this topology as if these brokers' gateways were not live."""
        live = {each: address for each, address in self.live.items() if each not in node_ids}
        return replace(self, live=live)

    def address_of(self, node_id: int) -> HostPort | None:
        """Return the address that clients get for a broker; None if it is the broker's own."""
        if node_id in self.live:
            return self.live[node_id]
        if self.direct_if_unserved:
            return None
        if self.elsewhere is not None:
            return self.elsewhere
        if self.live:
            nodes = sorted(self.live)
            return self.live[nodes[node_id % len(nodes)]]
        return self.last_known.get(node_id)


def topology_of(
    registrations: Iterable[Registration],
    *,
    broker_time_ms: int,
    own: Mapping[int, HostPort],
    fixed: Mapping[int, HostPort] | None = None,
    direct_if_unserved: bool = False,
) -> GatewayTopology:
    """Return the topology from all registrations at `broker_time_ms` of the brokers' clock.

    `own` maps this process's brokers to its addresses; they count as live. The addresses in `fixed`
    replace registered ones. The result omits gateways that are not for one broker, because they
    have separate clients.
    """
    gateways = [
        r
        for r in registrations
        if r.process.role is ProcessRole.GATEWAY and r.process.broker_id != NO_BROKER
    ]
    always = {**own, **(fixed or {})}
    last_known: dict[int, HostPort] = {}
    live: dict[int, HostPort] = {}
    heartbeats_ms: dict[int, int] = {}
    for found in sorted(gateways, key=lambda r: r.heartbeat_ms):
        address = _address(found)
        if address is None:
            continue
        last_known[found.process.broker_id] = address
        if found.process.broker_id not in always:
            heartbeats_ms[found.process.broker_id] = found.heartbeat_ms
        if is_live(found, broker_time_ms):
            live[found.process.broker_id] = address
    return GatewayTopology(
        live={**live, **always},
        last_known=last_known,
        direct_if_unserved=direct_if_unserved,
        own=frozenset(own.values()),
        heartbeats_ms=heartbeats_ms,
    )


def _address(registration: Registration) -> HostPort | None:
    """Return the address; None if the gateway registered none, or one that cannot be parsed."""
    try:
        return parse_host_port(registration.process.gateway_address)
    except ValueError:
        return None
