"""Connections of clients that were led here in place of another broker's gateway.

A client keeps the connection that it has for a broker, however often it is told that the broker
behind it leads nothing, and though it has learnt of another address since. So when a broker's own
gateway is back, those who came while it was away have to come again. They are not told from other
clients, who lose a connection for it.

Pure: numbers of connections, in the order in which they were accepted.
"""

from __future__ import annotations

from typing import NamedTuple

from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlmm.registration import LEASE_MS

# A client may come again before it has learnt where to; and another gateway, which hears of the
# change only with its next heartbeat, may lead it here again.
_ONCE_MORE_S = (5.0, 15.0)
# Whom this gateway's last run was given in place of another's, it cannot know: they are clients who
# lost their connection when it ended, and may have come again to where they were led before.
_AFTER_START_S = 15.0
_FIRST_NUMBER = 0
# Who judges by what was heard a moment sooner may have seen it run out.
_MAY_HAVE_RUN_OUT_MS = LEASE_MS - 2_000


class _Heartbeat(NamedTuple):
    """A gateway's heartbeat, and the connections that had come when it was not known yet."""

    heartbeat_ms: int
    next_number: int


class StrayConnections:
    """Not thread-safe."""

    def __init__(self) -> None:
        self._before: GatewayTopology | None = None
        self._first_numbers: dict[int, int] = {}
        self._seen: dict[int, _Heartbeat] = {}
        self._last_next_number = _FIRST_NUMBER
        self._once_more: list[tuple[float, int]] = []

    def leaving_from(
        self, topology: GatewayTopology, *, next_number: int, now_s: float
    ) -> int | None:
        """The first of the connections to be ended now, all above it are too; None: none.

        `next_number` is that of the next connection. To be asked about once a second.
        """
        if self._before is None and _may_replace_others(topology):
            self._once_more.append((now_s + _AFTER_START_S, _FIRST_NUMBER))
        started = [_FIRST_NUMBER] if self._has_first_gateway(topology) else []
        for node_id in topology.last_known:
            if topology.leads_here_instead(node_id):
                # Others may have led clients here before it was noticed here.
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
        """A lease that ran out in between was seen by who looked in time, and leads clients here.

        As with all gateways at once, where none could be heard for a while.
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
        """The first guest's number for each broker whose own gateway is back."""
        back = [node_id for node_id in self._first_numbers if node_id in topology.live]
        return [self._first_numbers.pop(node_id) for node_id in back]

    def _has_first_gateway(self, topology: GatewayTopology) -> bool:
        """Whether a broker that never had one has a gateway of its own by now."""
        before = self._before or GatewayTopology(live={})
        known = before.live.keys() | before.last_known.keys()
        return any(map(before.leads_here_instead, topology.live.keys() - known))


def _may_replace_others(topology: GatewayTopology) -> bool:
    """Whether another broker's clients could be led here while its own gateway is not live."""
    return bool(topology.own) and any(each not in topology.own for each in topology.live.values())
