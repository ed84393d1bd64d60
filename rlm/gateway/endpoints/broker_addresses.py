"""Where a cluster's brokers are, as the cluster was last heard to say."""

from __future__ import annotations

from collections.abc import Mapping

from rlm.broker.cluster import ClusterView
from rlm.config.values import HostPort
from rsm.segment.errors import NotFoundError


class BrokerAddresses:
    """`update` is one thread's, the rest is thread-safe."""

    def __init__(self) -> None:
        self._live: Mapping[int, HostPort] = {}
        self._known: Mapping[int, HostPort] = {}
        self._next_index = 0

    @property
    def live(self) -> Mapping[int, HostPort]:
        """Those that the cluster shows, by node id."""
        return self._live

    @property
    def known(self) -> Mapping[int, HostPort]:
        """Those too that are away, where they were; not where another broker is by now."""
        return self._known

    def update(self, view: ClusterView) -> None:
        """Take what the cluster says of its brokers. NotFoundError if it shows none."""
        if not view.brokers:
            raise NotFoundError("the cluster shows no broker")
        live = {b.node_id: HostPort(host=b.host, port=b.port) for b in view.brokers.values()}
        taken = frozenset(live.values())
        away = {n: address for n, address in self._known.items() if address not in taken}
        self._live, self._known = live, {**away, **live}

    def any(self) -> tuple[HostPort, ...]:
        """All live brokers, another one first each time."""
        addresses = tuple(self._live.values())
        if not addresses:
            return ()
        self._next_index += 1
        first = self._next_index % len(addresses)
        return addresses[first:] + addresses[:first]

    def of(self, node_id: int) -> tuple[HostPort, ...]:
        """Where a broker is, or was when it was last seen; none if another one is there now."""
        address = self._known.get(node_id)
        return () if address is None else (address,)
