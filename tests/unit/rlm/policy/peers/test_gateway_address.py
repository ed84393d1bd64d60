"""Whether clients may be given the address that a gateway advertises."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.config.values import parse_host_port
from rlm.policy.peers.gateway_address import OwnGateway, address_problem
from rlm.policy.peers.other_hosts import OtherHost
from rlmm.events.registration import NO_BROKER, ProcessRegistered, ProcessRole, Registration
from rlmm.registration import LEASE_MS

NOW_MS = 1_000_000
LOOPBACK = "127.0.0.1:19092"
PUBLIC = "10.0.0.1:19092"
ELSEWHERE = (OtherHost(name="broker 2", address="10.0.0.2:9092"),)


def own(
    address: str = PUBLIC,
    *,
    broker_id: int = 1,
    key: str = "gateway.listener",
    has_loopback_listener: bool = False,
) -> OwnGateway:
    return OwnGateway(
        broker_id=broker_id,
        address=address,
        is_loopback=parse_host_port(address).is_loopback,
        key=key,
        has_loopback_listener=has_loopback_listener,
    )


def gateway(
    broker_id: int,
    address: str = PUBLIC,
    *,
    process: int | None = None,
    heartbeat_ms: int = NOW_MS,
    role: ProcessRole = ProcessRole.GATEWAY,
) -> Registration:
    registered = ProcessRegistered(
        event_id=UUID(int=1),
        process_id=UUID(int=process or broker_id + 100),
        role=role,
        broker_id=broker_id,
        http_address="",
        heartbeat_interval_ms=5_000,
        version="0.2.0",
        gateway_address=address,
    )
    return Registration(process=registered, heartbeat_ms=heartbeat_ms)


def problem(
    gateway_: OwnGateway, *registrations: Registration, others: tuple[OtherHost, ...] = ()
) -> str | None:
    return address_problem(
        gateway_, registrations=registrations, others=others, broker_time_ms=NOW_MS
    )


@pytest.mark.parametrize("address", [LOOPBACK, "localhost:19092", "[::1]:19092", "127.3.2.1:1"])
def test_loopback_address_when_there_is_another_host_then_names_the_setting(address: str) -> None:
    found = problem(own(address), others=ELSEWHERE)

    assert found is not None
    assert f"gateway.listener={address}" in found
    assert "broker 2 at 10.0.0.2:9092" in found
    assert "Set gateway.listener to this host's own address" in found


def test_loopback_address_when_it_is_advertised_by_setting_then_names_that_setting() -> None:
    found = problem(own(LOOPBACK, key="gateway.advertised.listener"), others=ELSEWHERE)

    assert found is not None
    assert "Set gateway.advertised.listener to" in found


def test_fixed_address_when_it_is_loopback_and_there_is_another_host_then_names_the_setting() -> (
    None
):
    """Clients get the configured address instead of the registered one."""
    fixed = replace(own(PUBLIC), fixed_loopback="2=127.0.0.1:19093")

    found = problem(fixed, others=ELSEWHERE)

    assert found is not None
    assert "gateway.node.addresses=2=127.0.0.1:19093" in found
    assert "Set gateway.node.addresses to" in found
    assert problem(fixed) is None


def test_loopback_address_when_all_is_on_one_host_then_is_right() -> None:
    assert problem(own(LOOPBACK), gateway(2, "127.0.0.1:19093")) is None


def test_public_address_when_there_is_another_host_then_is_right() -> None:
    assert problem(own(PUBLIC), gateway(2, "10.0.0.2:19092"), others=ELSEWHERE) is None


@pytest.mark.parametrize(("has_loopback_listener", "is_right"), [(True, True), (False, False)])
def test_loopback_address_when_of_no_broker_then_is_right_for_clients_of_its_own_host_only(
    *, has_loopback_listener: bool, is_right: bool
) -> None:
    """A gateway on an application's host serves only that host, at its own listeners."""
    alone = own(LOOPBACK, broker_id=NO_BROKER, has_loopback_listener=has_loopback_listener)

    assert (problem(alone, others=ELSEWHERE) is None) is is_right


@pytest.mark.parametrize("address", [PUBLIC, "Gateway.example:19092"])
def test_address_when_a_live_gateway_of_another_broker_has_it_then_the_later_one_yields(
    address: str,
) -> None:
    """The new gateway is not registered yet, so it yields, whatever its broker's id is."""
    taken = gateway(5, address.lower())

    found = problem(own(address), taken)

    assert found is not None
    assert f"(gateway.listener={address} broker_id=5)" in found
    assert "Set gateway.listener to this host's own address" in found


def test_address_when_the_later_gateway_came_then_the_earlier_one_keeps_it() -> None:
    """The later one registers without an address."""
    assert problem(own(broker_id=7), gateway(7), gateway(1, "")) is None


def test_address_when_both_registered_before_either_saw_the_other_then_one_yields() -> None:
    both = (gateway(1), gateway(2))

    assert problem(own(broker_id=1), *both) is None
    assert problem(own(broker_id=2), *both) is not None


@pytest.mark.parametrize(
    "harmless",
    [
        pytest.param(gateway(2, heartbeat_ms=NOW_MS - LEASE_MS), id="dead"),
        pytest.param(gateway(1, process=3), id="a predecessor or worker of the same broker"),
        pytest.param(gateway(2, role=ProcessRole.MANAGER), id="no gateway"),
        pytest.param(gateway(2, "10.0.0.1:19093"), id="another port"),
        pytest.param(gateway(2, ""), id="withheld"),
        pytest.param(gateway(2, "nonsense"), id="of a newer version"),
        pytest.param(gateway(NO_BROKER), id="of no broker"),
    ],
)
def test_address_when_no_other_gateway_has_it_then_is_right(
    harmless: Registration,
) -> None:
    assert problem(own(), harmless) is None


def test_address_when_its_own_lease_ran_out_meanwhile_then_the_other_keeps_it() -> None:
    """The gateway was cut off, and another one took its address, so it counts as the later one."""
    before = gateway(1, heartbeat_ms=NOW_MS - LEASE_MS)

    assert problem(own(broker_id=1), before, gateway(2)) is not None


def test_address_when_gateways_of_no_broker_share_it_then_is_right() -> None:
    """For example, these gateways are behind a load balancer."""
    assert problem(own(broker_id=NO_BROKER), gateway(NO_BROKER, process=4)) is None
