"""Finds the address that a gateway on a wildcard listener advertises to clients.

It advertises the local address of its route to the broker, because other hosts reach the broker
by that network too. If that address is loopback, it advertises this host's name. With TLS it
always advertises the name, because certificates name hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.host_address import is_loopback
from rlm.config.values import HostPort
from rlmm.events.registration import NO_BROKER
from rsm.segment.errors import RetriableError


@dataclass(frozen=True, slots=True, kw_only=True)
class WildcardListener:
    """A listener on all addresses of this host, next to broker `broker_id` or NO_BROKER.

    `towards` returns the local IP address of a connection to a host and port, or raises
    RetriableError.
    """

    port: int
    broker_id: int
    host_name: str
    towards: Callable[[str, int], str]

    def address(self, view: ClusterView) -> HostPort:
        """Return the address to advertise. May block.

        Raises NotFoundError if the broker is absent, or RetriableError.
        """
        found = self._towards_any(self._brokers(view))
        return HostPort(host=self.host_name if is_loopback(found) else found, port=self.port)

    def _brokers(self, view: ClusterView) -> Sequence[BrokerAddress]:
        if self.broker_id != NO_BROKER:
            return (view.broker(self.broker_id),)
        return sorted(view.brokers.values(), key=lambda each: each.node_id)

    def _towards_any(self, brokers: Sequence[BrokerAddress]) -> str:
        problem = RetriableError("the cluster has no live broker")
        for each in brokers:
            try:
                return self.towards(each.host, each.port)
            except RetriableError as error:
                problem = error
        raise problem


class OwnAddress:
    """The address of one gateway. Call `update` from one thread; `get` is thread-safe."""

    def __init__(self, given: HostPort | WildcardListener) -> None:
        self._listener = given if isinstance(given, WildcardListener) else None
        self._known = given if isinstance(given, HostPort) else None

    def update(self, view: ClusterView) -> None:
        """Decide the address at the first call that succeeds. Raises as `address`."""
        if self._known is None and self._listener is not None:
            self._known = self._listener.address(view)

    def get(self) -> HostPort:
        """Return the address. Raises RetriableError before it is decided."""
        if self._known is None:
            raise RetriableError("the gateway's address is unknown until the cluster has answered")
        return self._known
