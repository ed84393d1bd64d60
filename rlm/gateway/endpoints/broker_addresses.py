"""Keeps the current address of each live broker, and the last address of each absent one."""

from __future__ import annotations

from collections.abc import Mapping

from rlm.broker.cluster import ClusterView
from rlm.config.values import HostPort
from rsm.segment.errors import NotFoundError


class BrokerAddresses:
    """Represents the addresses of live and absent brokers.

    Call `update` from one thread; the rest is thread-safe.
    """

    def __init__(self) -> None:
        self._live: Mapping[int, HostPort] = {}
        self._known: Mapping[int, HostPort] = {}
        self._next_index = 0

    @property
    def live(self) -> Mapping[int, HostPort]:
        """Return the addresses of the live brokers, by node id."""
        return self._live

    @property
    def known(self) -> Mapping[int, HostPort]:
        """Return the addresses of the live brokers, and the last address of each absent broker.

        The result omits an absent broker if a live one now uses its address.
        """
        return self._known

    def update(self, view: ClusterView) -> None:
        """Replace the live brokers. Raises NotFoundError if the cluster lists none."""
        if not view.brokers:
            raise NotFoundError("cannot update the brokers' addresses: the cluster lists no broker")
        live = {b.node_id: HostPort(host=b.host, port=b.port) for b in view.brokers.values()}
        taken = frozenset(live.values())
        away = {n: address for n, address in self._known.items() if address not in taken}
        self._live, self._known = live, {**away, **live}

    def rotate(self) -> tuple[HostPort, ...]:
        """Return the addresses of all live brokers. Each call starts with the next broker."""
        addresses = tuple(self._live.values())
        if not addresses:
            return ()
        self._next_index += 1
        first = self._next_index % len(addresses)
        return addresses[first:] + addresses[:first]

    def of(self, node_id: int) -> tuple[HostPort, ...]:
        """Return the current or last address of a broker.

        Returns an empty tuple if the broker is unknown, or if another broker now uses its address.
        """
        address = self._known.get(node_id)
        return () if address is None else (address,)
