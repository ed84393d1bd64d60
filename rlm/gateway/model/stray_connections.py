"""StrayConnections: clients that failed over to this gateway and must go back. Pure.

A client keeps such a connection, although this gateway's broker leads none of its partitions and
the client knows another address. When the gateway of its broker is back, this gateway closes all
connections accepted meanwhile. It cannot distinguish stray connections from others, so other
clients lose theirs too.

Connections are numbered in the order in which they were accepted.
"""

from __future__ import annotations

from typing import NamedTuple

from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlmm.registration import LEASE_MS

# A client may reconnect before it knows the new address. Another gateway may also redirect it here
# again, until that gateway has read the change at its next heartbeat.
_ONCE_MORE_S = (5.0, 15.0)
# The stray connections of this gateway's previous run are unknown. Their clients lost them when it
# ended, and may have reconnected here.
_AFTER_START_S = 15.0
_FIRST_NUMBER = 0
# A gateway that read the registrations a moment earlier may have seen the lease run out.
_MAY_HAVE_RUN_OUT_MS = LEASE_MS - 2_000


class _Heartbeat(NamedTuple):
    """A gateway's heartbeat, and the next connection's number just before it was read."""

    heartbeat_ms: int
    next_number: int


class StrayConnections:
    """Finds the connections to close. Not thread-safe."""

    def __init__(self) -> None:
        self._before: GatewayTopology | None = None
        self._first_numbers: dict[int, int] = {}
        self._seen: dict[int, _Heartbeat] = {}
        self._last_next_number = _FIRST_NUMBER
        self._once_more: list[tuple[float, int]] = []

    def find_first_to_close(
        self, topology: GatewayTopology, *, next_number: int, now_s: float
    ) -> int | None:
        """Return the first connection to close now, together with all above it; None for none.

        `next_number` is the number of the next connection. Call it about once a second.
        """
        if self._before is None and _may_replace_others(topology):
            self._once_more.append((now_s + _AFTER_START_S, _FIRST_NUMBER))
        started = [_FIRST_NUMBER] if self._has_first_gateway(topology) else []
        for node_id in topology.last_known:
            if topology.leads_here_instead(node_id):
                # Others may have redirected clients here before this process noticed.
                self._first_numbers.setdefault(node_id, self._last_next_number)
        self._see(topology)
        back = self._first_of_those_back(topology)
        self._before, self._last_next_number = topology, next_number
        due = [number for at_s, number in self._once_more if at_s <= now_s]
        self._once_more = [each for each in self._once_more if each[0] > now_s]
        if back or started:
            self._once_more += [(now_s + after_s, next_number) for after_s in _ONCE_MORE_S]
        return min((*back, *started, *due), default=None)

    def _see(self, topology: GatewayTopology) -> None:
        """Find leases that ran out between two calls: other gateways may redirect clients here.

        All gateways' leases may run out at once, if none could be read for a while.
        """
        ran_out: dict[int, int] = {}
        for node_id, heartbeat_ms in topology.heartbeats_ms.items():
            now = _Heartbeat(heartbeat_ms, self._last_next_number)
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
        """Return the first stray connection for each broker whose own gateway is back."""
        back = [node_id for node_id in self._first_numbers if node_id in topology.live]
        return [self._first_numbers.pop(node_id) for node_id in back]

    def _has_first_gateway(self, topology: GatewayTopology) -> bool:
        """Return whether a broker whose clients came here has its first own gateway now."""
        before = self._before or GatewayTopology(live={})
        known = before.live.keys() | before.last_known.keys()
        return any(map(before.leads_here_instead, topology.live.keys() - known))


def _may_replace_others(topology: GatewayTopology) -> bool:
    """Return whether other brokers' clients may come here while their gateway is not live."""
    return bool(topology.own) and any(each not in topology.own for each in topology.live.values())
