"""StrayConnections: finds clients that failed over to this gateway and must go back. Pure.

A client that failed over keeps its connection, although this gateway's broker leads none of the
client's partitions and the client knows another address. When the other broker's gateway is back,
this gateway closes all connections that it accepted meanwhile. It cannot distinguish stray
connections from others, so it also closes those of other clients.

A client with old metadata may connect at any later time. The broker refuses the requests of such a
client, and rlm.gateway.session.misdirected_requests finds the client by these errors.

Connections are numbered in the order of their acceptance.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlmm.registration import LEASE_MS

# A client may reconnect before it knows the new address. A gateway that has not read the change yet
# may also redirect the client here again.
_ONCE_MORE_S = 5.0
# Other gateways may notice up to this number of looks earlier that a gateway is gone.
_EARLIER_LOOK_COUNT = 5
_FIRST_NUMBER = 0
# A gateway that read the registrations a moment earlier may have seen the lease run out.
_MAY_HAVE_RUN_OUT_MS = LEASE_MS - 2_000


class _Heartbeat(NamedTuple):
    """Represents a gateway's heartbeat, and the next connection's number a few looks earlier."""

    heartbeat_ms: int
    next_number: int


class StrayConnections:
    """Finds the connections to close. Not thread-safe."""

    def __init__(self) -> None:
        self._before: GatewayTopology | None = None
        self._first_numbers: dict[int, int] = {}
        self._seen: dict[int, _Heartbeat] = {}
        self._next_numbers = deque([_FIRST_NUMBER], maxlen=_EARLIER_LOOK_COUNT)
        self._once_more: list[tuple[float, int]] = []

    def find_first_to_close(
        self, topology: GatewayTopology, *, next_number: int, now_s: float
    ) -> int | None:
        """Return the lowest number of the connections to close now; None if none must close.

        Close that connection and all later ones. `next_number` is the number of the next
        connection. Call this about once a second.
        """
        started = [_FIRST_NUMBER] if self._has_first_gateway(topology) else []
        for node_id in topology.last_known:
            if topology.leads_here_instead(node_id):
                self._first_numbers.setdefault(node_id, self._next_numbers[0])
        self._see(topology)
        back = self._first_of_those_back(topology)
        self._before = topology
        self._next_numbers.append(next_number)
        due = [number for at_s, number in self._once_more if at_s <= now_s]
        self._once_more = [each for each in self._once_more if each[0] > now_s]
        if back or started:
            self._once_more.append((now_s + _ONCE_MORE_S, next_number))
        return min((*back, *started, *due), default=None)

    def _see(self, topology: GatewayTopology) -> None:
        """Find leases that ran out between two calls.

        Other gateways may have redirected clients here meanwhile. All gateways' leases may run out
        at once, if no registration could be read for a while.
        """
        ran_out: dict[int, int] = {}
        for node_id, heartbeat_ms in topology.heartbeats_ms.items():
            now = _Heartbeat(heartbeat_ms, self._next_numbers[0])
            seen = self._seen.setdefault(node_id, now)
            if heartbeat_ms - seen.heartbeat_ms >= _MAY_HAVE_RUN_OUT_MS:
                ran_out[node_id] = seen.next_number
            if heartbeat_ms != seen.heartbeat_ms:
                self._seen[node_id] = now
        for node_id, number in ran_out.items():
            alone, with_others = topology.without([node_id]), topology.without(ran_out)
            if alone.leads_here_instead(node_id) or with_others.leads_here_instead(node_id):
                self._first_numbers.setdefault(node_id, number)

    def _first_of_those_back(self, topology: GatewayTopology) -> list[int]:
        """Return the first number of the stray connections of each broker whose gateway is back."""
        back = [node_id for node_id in self._first_numbers if node_id in topology.live]
        return [self._first_numbers.pop(node_id) for node_id in back]

    def _has_first_gateway(self, topology: GatewayTopology) -> bool:
        """Return whether a broker now has its first gateway; until then, its clients came here."""
        before = self._before or GatewayTopology(live={})
        known = before.live.keys() | before.last_known.keys()
        return any(map(before.leads_here_instead, topology.live.keys() - known))
