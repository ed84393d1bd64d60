"""Scenario 118: where the manager's HTTP API listens, and which address it registers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from rlm.app.registered_address import HostView, RegisteredAddress
from rlm.broker.cluster import BrokerAddress
from rlm.config.values import HostPort
from rlm.policy.peers.other_hosts import HostIdentity
from rlm.rest.api_listener import ApiListener
from rlm.rest.http_server import bind_listener
from rlmm.events.registration import ProcessRegistered, ProcessRole
from rsm.segment.errors import RetriableError
from tests.unit.rlm.cli.stated_managers import Cluster

_OWN = BrokerAddress(node_id=1, host="own.example.com", port=9092)
_OTHER = BrokerAddress(node_id=2, host="other.example.com", port=9092)


class _World:
    """A host that reaches its broker from address `towards`; the brokers can change."""

    def __init__(self, towards: str = "127.0.0.1") -> None:
        self.cluster = Cluster()
        self.towards = towards
        self.brokers = {1: _OWN}
        self.is_reachable = True

    def view(self) -> dict[int, BrokerAddress]:
        if not self.is_reachable:
            raise RetriableError("no bootstrap server answers")
        return self.brokers

    @contextmanager
    def address(
        self, *, listener: ApiListener | None = None, advertised: HostPort | None = None
    ) -> Iterator[RegisteredAddress]:
        listener = listener or ApiListener()
        try:
            yield RegisteredAddress(
                listener,
                advertised=advertised,
                node_id=1,
                brokers=self.view,
                metadata=self.cluster.metadata,
                host=HostView(
                    identity=HostIdentity(boot_id="b", network_namespace="n1"),
                    is_own=lambda host: host == _OWN.host,
                    towards=lambda _host, _port: self.towards,
                ),
            )
        finally:
            listener.stop()

    def register_elsewhere(self) -> None:
        event = ProcessRegistered(
            event_id=UUID(int=77),
            process_id=UUID(int=2),
            role=ProcessRole.MANAGER,
            broker_id=2,
            http_address="10.0.0.2:80",
            heartbeat_interval_ms=1000,
            version="1",
            boot_id="b",
            network_namespace="n2",
        )
        assert self.cluster.metadata.publish(event).accepted


def test_address_when_nothing_is_set_then_listens_where_the_broker_is_reached() -> None:
    with _World(towards="127.0.0.2").address() as address:
        address.refresh()

        host, _, port = address.http_address.rpartition(":")
        assert host == "127.0.0.2"
        assert int(port) > 0
        assert (address.problem, address.broker_address) == (None, "own.example.com:9092")


def test_address_when_refreshed_again_then_the_same_port() -> None:
    with _World().address() as address:
        address.refresh()
        before = address.http_address
        address.refresh()

        assert address.http_address == before


def test_address_when_another_host_comes_then_none_is_registered_until_it_is_gone() -> None:
    """Processes of another host cannot reach a loopback address."""
    world = _World()
    with world.address() as address:
        address.refresh()
        alone = address.http_address
        world.brokers = {1: _OWN, 2: _OTHER}
        address.refresh()
        among_others, problem = address.http_address, address.problem
        world.brokers = {1: _OWN}
        address.refresh()

        assert (among_others, address.http_address) == ("", alone)
        assert problem is not None
        assert "rest.listener" in problem
        assert address.problem is None


def test_address_when_a_process_is_in_another_network_namespace_then_loopback_is_a_problem() -> (
    None
):
    world = _World()
    world.register_elsewhere()
    with world.address() as address:
        address.refresh()

        assert address.problem is not None
        assert "manager of broker 2" in address.problem


def test_address_when_advertised_then_that_is_registered_wherever_it_listens() -> None:
    world = _World()
    world.brokers = {1: _OWN, 2: _OTHER}
    advertised = HostPort(host="broker1.example.com", port=8090)
    bound = bind_listener(HostPort(host="127.0.0.1", port=0), key="rest.listener")
    with world.address(listener=ApiListener(bound), advertised=advertised) as address:
        address.refresh()

        assert (address.http_address, address.problem) == ("broker1.example.com:8090", None)


def test_address_when_the_cluster_cannot_be_asked_then_the_last_decision_stays() -> None:
    world = _World()
    with world.address() as address:
        address.refresh()
        before = address.http_address
        world.is_reachable = False
        address.refresh()

        assert address.http_address == before


def test_address_when_the_cluster_was_never_reached_then_says_so() -> None:
    world = _World()
    world.is_reachable = False
    with world.address() as address, pytest.raises(RetriableError):
        address.refresh()


def test_address_when_it_cannot_be_bound_then_the_setting_is_named() -> None:
    """198.51.100.0/24 is for documentation: no host has such an address."""
    with (
        _World(towards="198.51.100.1").address() as address,
        pytest.raises(RetriableError, match=r"set rest\.listener"),
    ):
        address.refresh()
