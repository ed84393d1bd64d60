"""Scenario 118: nothing registers an address that other hosts cannot reach."""

from __future__ import annotations

import pytest

from rlm.app.manager_address import ManagerAddress, manager_address
from rlm.config.values import HostPort
from rlm.policy.peers.other_hosts import OtherHost

_OTHERS = (OtherHost(name="broker 2", address="10.0.0.2:9092"),)


def _decide(
    bound: str,
    *,
    port: int = 80,
    advertised: HostPort | None = None,
    towards: str = "10.0.0.1",
    others: tuple[OtherHost, ...] = _OTHERS,
) -> ManagerAddress:
    return manager_address(
        advertised=advertised,
        bound=HostPort(host=bound, port=port),
        towards_broker=towards,
        others=others,
    )


def test_address_when_other_hosts_reach_it_then_registered() -> None:
    assert _decide("10.0.0.1") == ManagerAddress(registered="10.0.0.1:80")


@pytest.mark.parametrize(
    ("wildcard", "towards", "registered"),
    [("0.0.0.0", "10.0.0.1", "10.0.0.1:80"), ("::", "fd00::1", "[fd00::1]:80")],  # noqa: S104
)
def test_address_when_a_wildcard_is_bound_then_that_towards_the_broker_is_registered(
    wildcard: str, towards: str, registered: str
) -> None:
    """Earlier versions registered the bare host name, which other hosts may not resolve."""
    assert _decide(wildcard, towards=towards) == ManagerAddress(registered=registered)


def test_address_when_one_is_advertised_then_that_is_registered() -> None:
    advertised = HostPort(host="broker1.example.com", port=9)

    assert _decide("127.0.0.1", advertised=advertised).registered == "broker1.example.com:9"


@pytest.mark.parametrize("bound", ["127.0.0.1", "::1", "127.0.1.1"])
def test_address_when_loopback_and_the_cluster_is_one_host_then_registered(bound: str) -> None:
    found = _decide(bound, others=())

    assert (found.registered, found.problem) == (str(HostPort(host=bound, port=80)), "")


@pytest.mark.parametrize(
    ("bound", "advertised", "towards", "setting"),
    [
        ("127.0.0.1", None, "10.0.0.1", "rest.listener=127.0.0.1:80"),
        ("127.0.0.1", None, "127.0.0.1", "Set rest.listener"),
        ("0.0.0.0", None, "127.0.1.1", "Set rest.listener"),  # noqa: S104
        ("10.0.0.1", "localhost", "10.0.0.1", "rest.advertised.listener=localhost:9"),
    ],
)
def test_address_when_loopback_and_there_is_another_host_then_none_and_the_setting_is_named(
    bound: str, advertised: str | None, towards: str, setting: str
) -> None:
    chosen = None if advertised is None else HostPort(host=advertised, port=9)

    found = _decide(bound, advertised=chosen, towards=towards)

    assert found.registered == ""
    assert setting in found.problem
    assert "broker 2 at 10.0.0.2:9092" in found.problem
