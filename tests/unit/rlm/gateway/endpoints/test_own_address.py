"""The addresses that a gateway registers if it listens on a wildcard address."""

from __future__ import annotations

import pytest

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.values import HostPort
from rlm.gateway.endpoints.own_address import (
    BrokerRoute,
    HttpAddress,
    OwnAddress,
    WildcardListener,
)
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
        WildcardListener(
            port=19092,
            host_name="bare",
            route=BrokerRoute(broker_id=broker_id, towards=_towards),
        )
    )


def _http(bound: str, *, advertised: str | None = None, broker_id: int = 1) -> HttpAddress:
    return HttpAddress(
        HostPort(host=bound, port=80),
        advertised=None if advertised is None else HostPort(host=advertised, port=9),
        route=BrokerRoute(broker_id=broker_id, towards=_towards),
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
    """Other hosts may not resolve the bare host name."""
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
    with pytest.raises(RetriableError, match="cannot find the gateway's address"):
        address.get()


def test_address_when_given_then_nothing_is_looked_up() -> None:
    given = HostPort(host="gateway.example.com", port=443)
    address = OwnAddress(given)

    address.update(_view())

    assert address.get() == given


@pytest.mark.parametrize(
    ("broker_id", "hosts", "registered"),
    [
        (1, {"b1": "near", "b2": "far"}, "10.0.0.1:80"),
        (NO_BROKER, {"b1": "gone", "b2": "far"}, "10.1.0.1:80"),
        (1, {"b1": "here", "b2": "far"}, ""),
    ],
)
@pytest.mark.parametrize("wildcard", ["0.0.0.0", "::"])  # noqa: S104
def test_http_address_when_it_listens_on_a_wildcard_then_by_which_this_host_reaches_the_broker(
    wildcard: str, broker_id: int, hosts: dict[str, str], registered: str
) -> None:
    """Scenario 118: a bare host name might not resolve on other hosts."""
    address = _http(wildcard, broker_id=broker_id)
    before = address.registered

    address.update(_view(**hosts))

    assert (before, address.registered) == ("", registered)


def test_http_address_when_the_route_changes_then_follows_it_and_is_kept_without_one() -> None:
    address = _http("0.0.0.0")  # noqa: S104
    found = []

    for hosts in ({"b1": "near"}, {"b1": "gone"}, {"b2": "near"}, {"b1": "far"}):
        address.update(_view(**hosts))
        found.append(address.registered)

    assert found == ["10.0.0.1:80", "10.0.0.1:80", "10.0.0.1:80", "10.1.0.1:80"]


@pytest.mark.parametrize(
    ("bound", "advertised", "registered"),
    [
        ("10.0.0.7", None, "10.0.0.7:80"),
        ("10.0.0.7", "outside.example.com", "outside.example.com:9"),
        ("0.0.0.0", "outside.example.com", "outside.example.com:9"),  # noqa: S104
        ("0.0.0.0", "localhost", ""),  # noqa: S104
        ("127.0.0.1", None, ""),
        ("127.0.0.1", "outside.example.com", ""),
    ],
)
def test_http_address_when_given_then_registered_if_other_hosts_can_reach_it(
    bound: str, advertised: str | None, registered: str
) -> None:
    """Only the supervisor can use a server on loopback, whatever the setting is."""
    address = _http(bound, advertised=advertised)

    address.update(_view(b1="near"))

    assert address.registered == registered
