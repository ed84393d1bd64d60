"""A whole cluster behind one address: the name that a client asks for tells the broker."""

from __future__ import annotations

import pytest

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.values import HostPort
from rlm.gateway.endpoints.named_front import NamedFront
from rlm.gateway.endpoints.server_names import ServerNames
from rsm.segment.errors import NotFoundError

_ADVERTISED = HostPort(host="kafka.example.com", port=443)


def _front() -> NamedFront:
    return NamedFront(ServerNames("b{node}.example.com"), _ADVERTISED)


def _view(**ports: int) -> ClusterView:
    brokers = {
        int(name[1:]): BrokerAddress(node_id=int(name[1:]), host="broker", port=port)
        for name, port in ports.items()
    }
    return ClusterView(cluster_id="c", controller_id=1, brokers=brokers, topics={}, refused={})


def _at(port: int) -> HostPort:
    return HostPort(host="broker", port=port)


def test_broker_when_it_is_named_then_it_alone_is_behind_the_name() -> None:
    front = _front()
    front.hear(_view(b1=9001, b2=9002))

    assert front.upstreams_of_name("B2.example.com") == (_at(9002),)
    assert front.upstreams_of_name("b3.example.com") == ()


def test_other_name_when_it_is_asked_for_then_any_broker_will_do() -> None:
    front = _front()
    front.hear(_view(b1=9001, b2=9002))

    found = [front.upstreams_of_name("kafka.example.com")[0] for _ in range(2)]

    assert set(found) == {_at(9001), _at(9002)}
    assert set(front.any_upstreams()) == {_at(9001), _at(9002)}


def test_clients_when_they_are_led_then_by_names_at_one_port() -> None:
    front = _front()
    front.hear(_view(b1=9001, b2=9002))

    topology = front.topology((), 0)

    assert topology.address_of(2) == HostPort(host="b2.example.com", port=443)
    assert topology.address_of(7) == _ADVERTISED


def test_broker_when_it_is_away_then_its_name_still_leads_there_unless_another_took_its_place() -> (
    None
):
    front = _front()
    front.hear(_view(b1=9001, b2=9002))

    front.hear(_view(b1=9001))
    assert front.upstreams_of_name("b2.example.com") == (_at(9002),)

    front.hear(_view(b1=9001, b3=9002))
    assert front.upstreams_of_name("b2.example.com") == ()


def test_cluster_when_it_shows_no_broker_then_what_was_heard_stays() -> None:
    front = _front()
    front.hear(_view(b1=9001))

    with pytest.raises(NotFoundError):
        front.hear(_view())

    assert front.any_upstreams() == (_at(9001),)
