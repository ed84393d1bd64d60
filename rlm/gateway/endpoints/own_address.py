"""Finds the addresses that a gateway registers: one for clients, and one for its HTTP server.

Each is the advertised address if one is set, else the address that the listener is bound to. The
local address of the route to the broker replaces a wildcard, because other hosts reach the broker
over the same network. If that address is loopback, clients get this host's name, and the gateway
registers no address for its HTTP server. With TLS, the host's name always replaces a wildcard for
clients, because certificates name hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.host_address import is_loopback
from rlm.config.values import HostPort
from rlmm.events.registration import NO_BROKER
from rsm.segment.errors import NotFoundError, RetriableError


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRoute:
    """Represents the route from this host to broker `broker_id`; with NO_BROKER, to any broker.

    `towards` returns the local IP address of a connection to a host and port. It raises
    RetriableError if there is no route.
    """

    broker_id: int
    towards: Callable[[str, int], str]

    def local_address(self, view: ClusterView) -> str:
        """Return the IP address of this host on that route. May block.

        Raises NotFoundError if the broker is absent. Raises RetriableError if no address is found.
        """
        return self._towards_any(self._brokers(view))

    def _brokers(self, view: ClusterView) -> Sequence[BrokerAddress]:
        if self.broker_id != NO_BROKER:
            return (view.broker(self.broker_id),)
        return sorted(view.brokers.values(), key=lambda each: each.node_id)

    def _towards_any(self, brokers: Sequence[BrokerAddress]) -> str:
        problem = RetriableError("cannot find a route: the cluster has no live broker")
        for each in brokers:
            try:
                return self.towards(each.host, each.port)
            except RetriableError as error:
                problem = error
        raise problem


@dataclass(frozen=True, slots=True, kw_only=True)
class WildcardListener:
    """Represents a listener for clients on all addresses of this host."""

    port: int
    host_name: str
    route: BrokerRoute

    def address(self, view: ClusterView) -> HostPort:
        """Return the address to advertise.

        Blocks as `BrokerRoute.local_address` does, and raises the same errors.
        """
        found = self.route.local_address(view)
        return HostPort(host=self.host_name if is_loopback(found) else found, port=self.port)


class OwnAddress:
    """Represents a gateway's address. Call `update` from one thread; `get` is thread-safe."""

    def __init__(self, given: HostPort | WildcardListener) -> None:
        self._listener = given if isinstance(given, WildcardListener) else None
        self._known = given if isinstance(given, HostPort) else None

    def update(self, view: ClusterView) -> None:
        """Set the address at the first call that succeeds; later calls do nothing.

        Raises the errors of `WildcardListener.address`.
        """
        if self._known is None and self._listener is not None:
            self._known = self._listener.address(view)

    def get(self) -> HostPort:
        """Return the address. Raises RetriableError until `update` has succeeded."""
        if self._known is None:
            raise RetriableError("cannot find the gateway's address: the cluster has not answered")
        return self._known


class HttpAddress:
    """Represents the address that a gateway registers for its HTTP server.

    Call `update` from one thread. The address is empty while other hosts cannot reach the server. A
    server on loopback serves only the supervisor on its host, whatever `rest.advertised.listener`
    is.
    """

    def __init__(self, bound: HostPort, *, advertised: HostPort | None, route: BrokerRoute) -> None:
        """`bound` is the server's bound address; `advertised` is the setting, None if not set."""
        self._bound = bound
        self._route = route
        self._is_given = advertised is not None
        self._registered = _reachable(bound if bound.is_loopback else advertised or bound)

    def update(self, view: ClusterView) -> None:
        """Replace a wildcard with the route's local address, if there is a route. May block."""
        if self._is_given or not self._bound.is_unspecified:
            return
        with suppress(NotFoundError, RetriableError):
            found = self._route.local_address(view)
            self._registered = _reachable(HostPort(host=found, port=self._bound.port))

    @property
    def registered(self) -> str:
        """Return the address to register; empty if there is none. Thread-safe."""
        return self._registered


def _reachable(address: HostPort) -> str:
    return "" if address.is_loopback or address.is_unspecified else str(address)
