"""Where clients find this gateway, if that takes a look at the cluster.

A gateway that listens on a wildcard address advertises the address by which this host reaches its
broker: other hosts reach the broker by that network too. A loopback address says nothing of other
hosts, so then it is this host's name, as it is with TLS, because certificates name hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.host_address import is_loopback
from rlm.config.values import HostPort
from rlmm.events.processes import NO_BROKER
from rsm.segment.errors import RetriableError


@dataclass(frozen=True, slots=True, kw_only=True)
class WildcardListener:
    """A listener on all addresses of this host, next to the broker of that id or none.

    `towards`: the IP address that a connection to host and port comes from, else RetriableError.
    """

    port: int
    broker_id: int
    host_name: str
    towards: Callable[[str, int], str]

    def address(self, view: ClusterView) -> HostPort:
        """What to advertise. NotFoundError if the broker is away; RetriableError. May wait."""
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
    """One gateway's. `update` is one thread's, `get` is thread-safe."""

    def __init__(self, given: HostPort | WildcardListener) -> None:
        self._listener = given if isinstance(given, WildcardListener) else None
        self._known = given if isinstance(given, HostPort) else None

    def update(self, view: ClusterView) -> None:
        """Decide once, with what the cluster says of its brokers. Raises as `address`."""
        if self._known is None and self._listener is not None:
            self._known = self._listener.address(view)

    def get(self) -> HostPort:
        """The address. RetriableError before it is decided."""
        if self._known is None:
            raise RetriableError("the gateway's address is not known before the cluster was heard")
        return self._known
