"""Checks that clients do not get an unusable address of the gateway, such as loopback.

rlm.policy.peers.gateway_address decides whether an address is usable. This module collects the
input, and repeats the decision each time it computes the topology.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from rlm.broker.cluster import ClusterView
from rlm.config.values import parse_host_port
from rlm.gateway.endpoints.own_address import HttpAddress, OwnAddress
from rlm.gateway.endpoints.routing import Routing
from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlm.policy.peers.gateway_address import OwnGateway, address_problem
from rlm.policy.peers.other_hosts import AdvertisedBroker, HostIdentity, OtherHost, other_hosts
from rlmm.events.registration import Registration

_log = logging.getLogger(__name__)


class CheckedRouting:
    """Represents a routing that also checks whether clients may get this gateway's address.

    Call `update` and `topology` from one thread; the properties are thread-safe.
    """

    def __init__(
        self,
        routing: Routing,
        address: OwnAddress,
        own: Callable[[], OwnGateway],
        host: HostIdentity,
        is_own_host: Callable[[str], bool | None],
        *,
        http: HttpAddress,
    ) -> None:
        """Call `own` only after `address` is known.

        `is_own_host` returns whether a host name resolves to `host`; None if it cannot be resolved.
        """
        self._http = http
        self._routing = routing
        self._address = address
        self._own = own
        self._host = host
        self._is_own_host = is_own_host
        self._brokers: tuple[AdvertisedBroker, ...] = ()
        self._broker_address = ""
        self._problem: str | None = None

    def update(self, view: ClusterView) -> None:
        """Replace the live brokers. May wait for DNS.

        Raises the errors of `OwnAddress.update` and `Routing.update`.
        """
        self._address.update(view)
        self._routing.update(view)
        self._http.update(view)
        self._brokers = tuple(
            AdvertisedBroker(
                broker_id=each.node_id,
                address=str(each),
                is_own_address=self._is_own_host(each.host),
            )
            for each in view.brokers.values()
        )
        found = view.brokers.get(self._own().broker_id)
        if found is not None:
            self._broker_address = str(found)

    def topology(
        self, registrations: Iterable[Registration], broker_time_ms: int
    ) -> GatewayTopology:
        """Return the current topology, and update `problem`.

        Gateways of version 0.1.0 register loopback addresses. While the cluster has another host,
        this method ignores such registrations.
        """
        known = tuple(registrations)
        others = other_hosts(
            self._host,
            broker_id=self._own().broker_id,
            registrations=known,
            brokers=self._brokers,
            broker_time_ms=broker_time_ms,
        )
        self._decide(known, others, broker_time_ms)
        if others:
            known = tuple(each for each in known if not _is_on_loopback(each))
        return self._routing.topology(known, broker_time_ms)

    @property
    def address(self) -> str:
        """Return this gateway's address, usable or not. Raises RetriableError while unknown."""
        return str(self._address.get())

    @property
    def http_address(self) -> str:
        """Return this gateway's HTTP address; empty if other hosts cannot reach the server."""
        return self._http.registered

    @property
    def problem(self) -> str | None:
        """Return why clients must not get this gateway's address; None if they may.

        Returns None also before the first call of `topology`.
        """
        return self._problem

    @property
    def broker_address(self) -> str:
        """Return the address that this gateway's broker advertises; empty if unknown."""
        return self._broker_address

    def _decide(
        self, known: Iterable[Registration], others: Iterable[OtherHost], broker_time_ms: int
    ) -> None:
        problem = address_problem(
            self._own(), registrations=known, others=others, broker_time_ms=broker_time_ms
        )
        if problem is not None and self._problem is None:
            _log.warning(problem)
        elif problem is None and self._problem is not None:
            _log.info("clients may get the gateway's address again")
        self._problem = problem


def _is_on_loopback(registration: Registration) -> bool:
    try:
        return parse_host_port(registration.process.gateway_address).is_loopback
    except ValueError:
        return False
