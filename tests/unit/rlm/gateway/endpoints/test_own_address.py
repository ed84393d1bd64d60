"""What a gateway advertises that listens on a wildcard address."""

from __future__ import annotations

import pytest

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.values import HostPort
from rlm.gateway.endpoints.own_address import OwnAddress, WildcardListener
from rlmm.events.registration import NO_BROKER
from rsm.segment.errors import NotFoundError, RetriableError

_ROUTES = {"near": "10.0.0.1", "far": "10.1.0.1", "here": "127.0.1.1"}


def _towards(host: str, port: int) -> str:
    try:
        return _ROUTES[host]
    except KeyError:
        raise RetriableError("no route", host=host, port=port) from None


def _view(**hosts: str) -> ClusterView:
    """Brokers by id, as `b1="near"`."""
    brokers = {
        int(name[1:]): BrokerAddress(node_id=int(name[1:]), host=host, port=9092)
        for name, host in hosts.items()
    }
    return ClusterView(cluster_id="c", controller_id=None, brokers=brokers, topics={}, refused={})


def _address(broker_id: int = 1) -> OwnAddress:
    return OwnAddress(
        WildcardListener(port=19092, broker_id=broker_id, host_name="bare", towards=_towards)
    )


@pytest.mark.parametrize(
    ("broker_id", "hosts", "advertised"),
    [
        (1, {"b1": "near", "b2": "far"}, "10.0.0.1"),
        (2, {"b1": "near", "b2": "far"}, "10.1.0.1"),
        (1, {"b1": "here", "b2": "far"}, "bare"),
        (NO_BROKER, {"b2": "far", "b1": "gone"}, "10.1.0.1"),
    ],
)
def test_address_when_it_listens_on_a_wildcard_then_by_which_this_host_reaches_the_broker(
    broker_id: int, hosts: dict[str, str], advertised: str
) -> None:
    """It was the bare host name, which may not resolve on other hosts."""
    address = _address(broker_id)

    address.update(_view(**hosts))

    assert address.get() == HostPort(host=advertised, port=19092)


def test_address_when_decided_then_stays() -> None:
    address = _address()
    address.update(_view(b1="near"))

    address.update(_view(b1="gone"))

    assert address.get().host == "10.0.0.1"


@pytest.mark.parametrize(
    ("hosts", "error"), [({"b2": "far"}, NotFoundError), ({"b1": "gone"}, RetriableError)]
)
def test_address_when_its_broker_is_away_or_not_reached_then_not_known(
    hosts: dict[str, str], error: type[Exception]
) -> None:
    address = _address()

    with pytest.raises(error):
        address.update(_view(**hosts))
    with pytest.raises(RetriableError, match="unknown until"):
        address.get()


def test_address_when_given_then_nothing_is_looked_up() -> None:
    given = HostPort(host="gateway.example.com", port=443)
    address = OwnAddress(given)

    address.update(_view())

    assert address.get() == given
