"""A whole cluster at one address: the name that a client asks for selects the broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.values import HostPort
from rlm.gateway.endpoints.sni_routing import ServerNames, SniRouting
from rsm.segment.errors import NotFoundError

_ADVERTISED = HostPort(host="kafka.example.com", port=443)
_NAMES = ServerNames("broker-{node}.kafka.example.com")


def _routing() -> SniRouting:
    return SniRouting(ServerNames("b{node}.example.com"), _ADVERTISED)


def _view(**ports: int) -> ClusterView:
    brokers = {
        int(name[1:]): BrokerAddress(node_id=int(name[1:]), host="broker", port=port)
        for name, port in ports.items()
    }
    return ClusterView(cluster_id="c", controller_id=1, brokers=brokers, topics={}, refused={})


def _at(port: int) -> HostPort:
    return HostPort(host="broker", port=port)


def test_broker_when_its_name_is_requested_then_the_name_leads_to_it_alone() -> None:
    routing = _routing()
    routing.update(_view(b1=9001, b2=9002))

    assert routing.upstreams_of_name("B2.example.com") == (_at(9002),)
    assert routing.upstreams_of_name("b3.example.com") == ()


def test_other_name_when_it_is_requested_then_any_broker_serves_the_client() -> None:
    routing = _routing()
    routing.update(_view(b1=9001, b2=9002))

    found = [routing.upstreams_of_name("kafka.example.com")[0] for _ in range(2)]

    assert set(found) == {_at(9001), _at(9002)}
    assert set(routing.any_upstreams()) == {_at(9001), _at(9002)}


def test_clients_when_they_are_redirected_then_to_names_at_one_port() -> None:
    routing = _routing()
    routing.update(_view(b1=9001, b2=9002))

    topology = routing.topology((), 0)

    assert topology.address_of(2) == HostPort(host="b2.example.com", port=443)
    assert topology.address_of(7) == _ADVERTISED


def test_broker_when_it_is_away_then_its_name_stays_unless_another_has_its_address() -> None:
    routing = _routing()
    routing.update(_view(b1=9001, b2=9002))

    routing.update(_view(b1=9001))
    assert routing.upstreams_of_name("b2.example.com") == (_at(9002),)

    routing.update(_view(b1=9001, b3=9002))
    assert routing.upstreams_of_name("b2.example.com") == ()


def test_cluster_when_it_shows_no_broker_then_the_last_known_brokers_stay() -> None:
    routing = _routing()
    routing.update(_view(b1=9001))

    with pytest.raises(NotFoundError):
        routing.update(_view())

    assert routing.any_upstreams() == (_at(9001),)


@given(node_id=st.integers(0, 2**31 - 1))
def test_name_of_a_broker_when_read_then_is_that_broker(node_id: int) -> None:
    assert _NAMES.node_of(_NAMES.name_of(node_id)) == node_id
    assert _NAMES.node_of(_NAMES.name_of(node_id).upper()) == node_id


@pytest.mark.parametrize(
    "name",
    [
        "kafka.example.com",
        "broker-.kafka.example.com",
        "broker-01.kafka.example.com",
        "broker--1.kafka.example.com",
        "broker-4294967296.kafka.example.com",
        "broker-1.kafkaXexample.com",
        "broker-1.kafka.example.com.",
        "broker-\u0661.kafka.example.com",
        "",
    ],
)
def test_other_name_when_read_then_is_no_broker(name: str) -> None:
    assert _NAMES.node_of(name) is None
