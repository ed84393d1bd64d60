"""Which processes and brokers are on another host."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlm.policy.peers.other_hosts import AdvertisedBroker, HostIdentity, other_hosts
from rlmm.events.registration import NO_BROKER, ProcessRegistered, ProcessRole, Registration
from rlmm.registration import LEASE_MS

NOW_MS = 1_000_000
HERE = HostIdentity(boot_id="boot-1", network_namespace="net:[1]")


def registered(
    broker_id: int,
    *,
    boot_id: str = HERE.boot_id,
    network_namespace: str = HERE.network_namespace,
    role: ProcessRole = ProcessRole.MANAGER,
    heartbeat_ms: int = NOW_MS,
) -> Registration:
    process = ProcessRegistered(
        event_id=UUID(int=1),
        process_id=UUID(int=broker_id + 2),
        role=role,
        broker_id=broker_id,
        http_address=f"10.0.0.{broker_id + 2}:80",
        heartbeat_interval_ms=30_000,
        version="0.2.0",
        boot_id=boot_id,
        network_namespace=network_namespace,
    )
    return Registration(process=process, heartbeat_ms=heartbeat_ms)


def broker(broker_id: int, *, is_own_address: bool | None) -> AdvertisedBroker:
    return AdvertisedBroker(
        broker_id=broker_id, address=f"b{broker_id}:9092", is_own_address=is_own_address
    )


def found(
    *registrations: Registration,
    brokers: tuple[AdvertisedBroker, ...] = (),
    own: HostIdentity = HERE,
    broker_id: int = 1,
) -> list[str]:
    return [
        str(each)
        for each in other_hosts(
            own,
            broker_id=broker_id,
            registrations=registrations,
            brokers=brokers,
            broker_time_ms=NOW_MS,
        )
    ]


def test_hosts_when_three_brokers_share_a_loopback_interface_then_there_is_no_other() -> None:
    brokers = tuple(broker(each, is_own_address=True) for each in (1, 2, 3))

    assert found(registered(2), registered(3), brokers=brokers) == []


def test_hosts_when_a_process_has_another_boot_id_then_is_another() -> None:
    assert found(registered(2, boot_id="boot-2")) == ["manager of broker 2 at 10.0.0.4:80"]


def test_hosts_when_a_process_is_in_another_network_namespace_then_is_another() -> None:
    """Containers of one machine have separate loopback interfaces."""
    gateway = registered(2, network_namespace="net:[2]", role=ProcessRole.GATEWAY)

    assert found(gateway) == ["gateway of broker 2 at 10.0.0.4:80"]


def test_hosts_when_a_gateway_of_no_broker_is_elsewhere_then_is_another() -> None:
    gateway = registered(NO_BROKER, boot_id="boot-2", role=ProcessRole.GATEWAY)

    assert found(gateway) == ["gateway of no broker at 10.0.0.1:80"]
    assert found(gateway, broker_id=NO_BROKER) == ["gateway of no broker at 10.0.0.1:80"]


@pytest.mark.parametrize(
    ("role", "age_ms", "counts"),
    [
        (ProcessRole.MANAGER, 89_999, True),
        (ProcessRole.MANAGER, 90_000, False),
        (ProcessRole.GATEWAY, LEASE_MS - 1, True),
        (ProcessRole.GATEWAY, LEASE_MS, False),
    ],
)
def test_hosts_when_a_process_is_dead_then_it_does_not_count(
    role: ProcessRole, age_ms: int, *, counts: bool
) -> None:
    elsewhere = registered(2, boot_id="boot-2", role=role, heartbeat_ms=NOW_MS - age_ms)

    assert bool(found(elsewhere)) is counts


@pytest.mark.parametrize("own", [HERE, HostIdentity()])
def test_hosts_when_ids_are_not_known_then_are_no_evidence(own: HostIdentity) -> None:
    """Version 0.1.0 registers none."""
    unknown = [registered(2, boot_id="", network_namespace="")]
    if own == HostIdentity():
        unknown.append(registered(3, boot_id="boot-2", network_namespace="net:[2]"))

    assert found(*unknown, own=own) == []


def test_hosts_when_only_one_id_is_known_then_it_decides() -> None:
    assert found(registered(2, boot_id="", network_namespace="net:[2]"))
    assert not found(registered(2, boot_id="", network_namespace="net:[1]"))


def test_hosts_when_a_broker_advertises_an_address_of_none_of_this_host_then_is_another() -> None:
    """Before any process next to it has registered."""
    brokers = (broker(3, is_own_address=False), broker(2, is_own_address=True))

    assert found(brokers=brokers) == ["broker 3 at b3:9092"]


def test_hosts_when_a_brokers_name_does_not_resolve_then_is_no_evidence() -> None:
    assert found(brokers=(broker(2, is_own_address=None),)) == []


def test_hosts_when_it_is_the_own_broker_then_is_this_host_whatever_it_advertises() -> None:
    """The broker may advertise a translated address; earlier processes may seem alive."""
    own_broker = broker(1, is_own_address=False)

    assert found(registered(1, boot_id="boot-0"), brokers=(own_broker,)) == []
