"""Keeps the registered address of the manager's HTTP API current, and listens there.

This module gathers the inputs; rlm.app.manager_address makes the decision.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rlm.app.manager_address import manager_address
from rlm.broker.cluster import BrokerAddress
from rlm.config.load import Config
from rlm.config.values import HostPort
from rlm.policy.peers.other_hosts import AdvertisedBroker, HostIdentity, other_hosts
from rlm.process.host_identity import OwnAddresses, read_host_identity
from rlm.process.local_address import local_address_towards
from rlm.rest.api_listener import ApiListener
from rlm.source.meta_properties import BrokerIdentity
from rlm.worker.cluster_access import open_bootstrap
from rlmm.events.registration import dated_registrations
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """Represents how this host sees addresses.

    `is_own` returns whether a host name leads to this host; None if the name does not resolve.
    `towards` returns the IP address from which this host connects to a host and port. It raises
    RetriableError if the name does not resolve or there is no route.
    """

    identity: HostIdentity
    is_own: Callable[[str], bool | None]
    towards: Callable[[str, int], str]


class RegisteredAddress:
    """Represents one manager's address. One thread calls `refresh`; properties are thread-safe."""

    def __init__(
        self,
        listener: ApiListener,
        *,
        advertised: HostPort | None,
        node_id: int,
        brokers: Callable[[], Mapping[int, BrokerAddress]],
        metadata: RemoteLogMetadataManager,
        host: HostView,
    ) -> None:
        """Choose the address of the manager of the broker `node_id`.

        `brokers` fetches the cluster's live brokers. `advertised` is the setting; None if it is not
        set.
        """
        self._listener = listener
        self._advertised = advertised
        self._node_id = node_id
        self._brokers = brokers
        self._metadata = metadata
        self._host = host
        self._http_address = ""
        self._broker_address = ""
        self._problem: str | None = None
        self._is_decided = False

    @property
    def http_address(self) -> str:
        """Return the address to register; empty before the first refresh or during a `problem`."""
        return self._http_address

    @property
    def broker_address(self) -> str:
        """Return the address that the broker advertises; empty before the first refresh."""
        return self._broker_address

    @property
    def problem(self) -> str | None:
        """Return why other hosts cannot reach the manager; None if they can or before a refresh."""
        return self._problem

    def refresh(self) -> None:
        """Listen if not yet listening, and decide again what to register. May wait for DNS.

        Raises the errors of `brokers`. Raises RetriableError if the broker is not live, if its name
        does not resolve, if there is no route to it, or if no socket can be bound. After the first
        decision, logs a RetriableError instead of raising it, and keeps the previous decision.
        """
        try:
            self._decide(self._brokers())
        except RetriableError as error:
            if not self._is_decided:
                raise
            _log.debug(LogLine("cannot check the address of the HTTP API", error=error))

    def _decide(self, brokers: Mapping[int, BrokerAddress]) -> None:
        own = brokers.get(self._node_id)
        if own is None:
            raise RetriableError(
                "cannot find this host's broker: the cluster has no live broker with its node id",
                node_id=self._node_id,
                advice="Start the broker, or correct bootstrap.servers or log.dirs",
            )
        self._broker_address = str(own)
        towards = self._host.towards(own.host, own.port)
        bound = self._listener.listen_at(towards)
        registered, now_ms = dated_registrations(self._metadata)
        decided = manager_address(
            advertised=self._advertised,
            bound=bound,
            towards_broker=towards,
            others=other_hosts(
                self._host.identity,
                broker_id=self._node_id,
                registrations=registered,
                brokers=self._advertised_brokers(brokers),
                broker_time_ms=now_ms,
            ),
        )
        self._note(decided.registered, decided.problem or None)

    def _advertised_brokers(
        self, brokers: Mapping[int, BrokerAddress]
    ) -> tuple[AdvertisedBroker, ...]:
        return tuple(
            AdvertisedBroker(
                broker_id=each.node_id,
                address=str(each),
                is_own_address=self._host.is_own(each.host),
            )
            for each in brokers.values()
        )

    def _note(self, address: str, problem: str | None) -> None:
        if problem is not None and self._problem is None:
            _log.warning(problem)
        elif problem is None and address != self._http_address:
            _log.info(LogLine("chose the registered address of the HTTP API", http_address=address))
        self._http_address = address
        self._problem = problem
        self._is_decided = True


def open_registered_address(
    config: Config,
    identity: BrokerIdentity,
    listener: ApiListener,
    metadata: RemoteLogMetadataManager,
    clock: Clock,
) -> RegisteredAddress:
    """Open the address of the manager of the broker `identity`. Sends nothing yet."""
    bootstrap = open_bootstrap(config.cluster, clock)
    return RegisteredAddress(
        listener,
        advertised=config.process.rest_advertised_listener,
        node_id=identity.node_id,
        brokers=lambda: bootstrap.view(()).brokers,
        metadata=metadata,
        host=HostView(
            identity=read_host_identity(),
            is_own=OwnAddresses(clock).has,
            towards=local_address_towards,
        ),
    )
