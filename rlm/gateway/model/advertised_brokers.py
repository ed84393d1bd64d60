"""Which gateway clients are led to for each broker.

A client that is led past the gateways finds only what its broker still has: it would reset, and
never come back. So a broker whose gateway is not live is given the address of another live one,
which answers that it doesn't lead, until the client asks again; without any live one, it keeps the
last address that its gateway had. Leading to the broker itself is for those who say so.

Pure: registrations and the brokers' clock in, addresses out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from rlm.config.values import HostPort, parse_host_port
from rlmm.events.processes import NO_BROKER, ProcessRole
from rlmm.registration import is_live
from rlmm.spi import Registration


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTopology:
    """Addresses by node id. `live` has at least one's own; `last_known` those of the dead too.

    `own` are this process's addresses. `heartbeats_ms` tells when each of the gateways that are
    only found by them was heard of last.
    `elsewhere` is where a gateway of the whole cluster leads those whom it cannot lead to a broker.
    """

    live: Mapping[int, HostPort]
    last_known: Mapping[int, HostPort] = field(default_factory=dict)
    direct_if_unserved: bool = False
    elsewhere: HostPort | None = None
    own: frozenset[HostPort] = frozenset()
    heartbeats_ms: Mapping[int, int] = field(default_factory=dict)

    def leads_here_instead(self, node_id: int) -> bool:
        """Whether a broker's clients are led here because its own gateway is not live."""
        return node_id not in self.live and self.address_of(node_id) in self.own

    def without(self, node_ids: Collection[int]) -> GatewayTopology:
        """As if the gateways of these were not live."""
        live = {each: address for each, address in self.live.items() if each not in node_ids}
        return replace(self, live=live)

    def address_of(self, node_id: int) -> HostPort | None:
        """Where clients find the broker `node_id`; None: at its own address."""
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
    """The topology as all registrations tell it at `broker_time_ms`, the brokers' clock.

    `own` are the brokers that this process serves: it knows that it lives. `fixed` replaces what
    registrations say of the brokers it names. A gateway of no broker has clients of its own.
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
    """None for what is no address: a newer version may write what we cannot read."""
    try:
        return parse_host_port(registration.process.gateway_address)
    except ValueError:
        return None
