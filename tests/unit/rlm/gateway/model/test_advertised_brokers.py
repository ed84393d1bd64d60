"""Where clients are redirected for each broker."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlm.config.values import HostPort
from rlm.gateway.model.advertised_brokers import GatewayTopology, topology_of
from rlmm.events.registration import NO_BROKER, ProcessRegistered, ProcessRole, Registration
from rlmm.registration import LEASE_MS

OWN = HostPort(host="own", port=1)
NOW_MS = 100_000


def registered(
    node_id: int,
    *,
    address: str = "",
    heartbeat_ms: int = NOW_MS,
    role: ProcessRole = ProcessRole.GATEWAY,
) -> Registration:
    process = ProcessRegistered(
        event_id=UUID(int=1),
        process_id=UUID(int=node_id + 2),
        role=role,
        broker_id=node_id,
        http_address="",
        heartbeat_interval_ms=5_000,
        version="1",
        gateway_address=address or f"gw-{node_id}:19092",
    )
    return Registration(process=process, heartbeat_ms=heartbeat_ms)


def topology(*registrations: Registration, **settings: object) -> GatewayTopology:
    return topology_of(registrations, broker_time_ms=NOW_MS, own={1: OWN}, **settings)  # type: ignore[arg-type]  # passed through


def test_address_when_the_brokers_gateway_lives_then_is_that_gateways() -> None:
    found = topology(registered(2), registered(3, role=ProcessRole.MANAGER))

    assert (found.address_of(1), found.address_of(2)) == (OWN, HostPort(host="gw-2", port=19092))


def test_address_when_a_gateway_is_next_to_no_broker_then_no_client_is_redirected_to_it() -> None:
    """R16: a gateway of the whole cluster redirects clients only to its own endpoints."""
    found = topology(registered(NO_BROKER), registered(2, heartbeat_ms=1))

    assert NO_BROKER not in {*found.live, *found.last_known}
    assert found.address_of(2) == OWN


def test_address_when_there_is_an_elsewhere_then_is_that_for_unserved_clients() -> None:
    elsewhere = HostPort(host="gateway", port=1)
    found = GatewayTopology(live={1: OWN}, elsewhere=elsewhere)

    assert (found.address_of(1), found.address_of(2)) == (OWN, elsewhere)


def test_heartbeats_when_a_broker_has_had_several_gateways_then_are_the_last_ones() -> None:
    registrations = [registered(2, heartbeat_ms=each) for each in (NOW_MS - 5, NOW_MS - 50_000)]

    assert topology(*registrations, registered(3)).heartbeats_ms == {2: NOW_MS - 5, 3: NOW_MS}


def test_heartbeats_when_an_address_is_always_given_out_then_they_are_of_no_account() -> None:
    """For its own broker and for brokers with a configured address, no registration is used."""
    fixed = {2: HostPort(host="fixed", port=3)}

    found = topology(registered(1), registered(2), registered(3), fixed=fixed)

    assert found.heartbeats_ms == {3: NOW_MS}


def test_address_when_the_lease_is_over_then_is_another_live_gateways() -> None:
    """R16: the lease ends by the brokers' clock; clients are not redirected to the broker."""
    found = topology(registered(2, heartbeat_ms=NOW_MS - LEASE_MS))

    assert found.address_of(2) == OWN


def test_address_when_a_replay_brings_an_old_heartbeat_then_does_not_revive() -> None:
    """R14: a registration's age is that of its record, not of its arrival."""
    found = topology(registered(2, heartbeat_ms=1))

    assert 2 not in found.live


def test_address_when_no_gateway_lives_then_is_the_last_known() -> None:
    """R16."""
    last = HostPort(host="last", port=2)

    assert GatewayTopology(live={}, last_known={2: last}).address_of(2) == last


def test_address_when_unserved_and_direct_is_allowed_then_is_the_brokers() -> None:
    """R16: a setting, off by default."""
    assert topology(direct_if_unserved=True).address_of(2) is None
    assert topology().address_of(2) == OWN


def test_address_when_mapped_by_setting_then_no_registration_matters() -> None:
    fixed = HostPort(host="fixed", port=3)

    assert topology(registered(2), fixed={2: fixed}).address_of(2) == fixed


@pytest.mark.parametrize("address", ["nonsense", "host:99999"])
def test_address_when_registered_as_something_else_then_is_passed_over(address: str) -> None:
    assert topology(registered(2, address=address)).address_of(2) == OWN


def test_topology_when_another_brokers_gateway_is_away_then_says_who_replaces_it() -> None:
    found = topology(registered(2), registered(3, heartbeat_ms=1), registered(4, heartbeat_ms=1))

    assert [each for each in (1, 2, 3, 4) if found.leads_here_instead(each)] == [4]
