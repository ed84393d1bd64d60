"""No client is redirected to an address that is wrong on the client's host."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.values import HostPort, parse_host_port
from rlm.gateway.endpoints.checked_routing import CheckedRouting
from rlm.gateway.endpoints.own_address import BrokerRoute, HttpAddress, OwnAddress
from rlm.gateway.endpoints.single_broker_routing import SingleBrokerRouting, SingleBrokerSettings
from rlm.policy.peers.gateway_address import OwnGateway
from rlm.policy.peers.other_hosts import HostIdentity
from rlmm.events.registration import ProcessRegistered, ProcessRole, Registration

NOW_MS = 1_000_000
HERE = HostIdentity(boot_id="boot-1", network_namespace="net:[1]")


def routing(address: str, *, broker_id: int = 1) -> CheckedRouting:
    advertised = parse_host_port(address)
    own = OwnGateway(
        broker_id=broker_id,
        address=address,
        is_loopback=advertised.is_loopback,
        key="gateway.listener",
        has_loopback_listener=False,
    )
    own_address = OwnAddress(advertised)
    location = SingleBrokerSettings(node_id=broker_id, own=own_address.get)
    return CheckedRouting(
        SingleBrokerRouting(location),
        own_address,
        lambda: own,
        HERE,
        {"10.0.0.1": True, "10.0.0.2": False}.get,
        http=HttpAddress(
            HostPort(host="0.0.0.0", port=9465),  # noqa: S104
            advertised=None,
            route=BrokerRoute(broker_id=broker_id, towards=lambda host, _port: host),
        ),
    )


def cluster(**hosts: str) -> ClusterView:
    """Return brokers by id, as `b1="10.0.0.1"`."""
    brokers = {
        int(name[1:]): BrokerAddress(node_id=int(name[1:]), host=host, port=9092)
        for name, host in hosts.items()
    }
    return ClusterView(cluster_id="c", controller_id=None, brokers=brokers, topics={}, refused={})


def gateway(broker_id: int, address: str, *, boot_id: str = "") -> Registration:
    process = ProcessRegistered(
        event_id=UUID(int=1),
        process_id=UUID(int=broker_id),
        role=ProcessRole.GATEWAY,
        broker_id=broker_id,
        http_address="",
        heartbeat_interval_ms=5_000,
        version="0.1.0",
        gateway_address=address,
        boot_id=boot_id,
    )
    return Registration(process=process, heartbeat_ms=NOW_MS)


def test_routing_when_another_broker_is_elsewhere_then_a_loopback_address_is_a_problem(
    caplog: pytest.LogCaptureFixture,
) -> None:
    checked = routing("127.0.0.1:19092")
    assert checked.problem is None

    checked.update(cluster(b1="10.0.0.1", b2="10.0.0.2"))
    for _ in "12":
        checked.topology([], NOW_MS)

    assert checked.problem is not None
    assert "other_host=broker 2 at 10.0.0.2:9092" in checked.problem
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_routing_when_the_other_host_has_gone_then_the_problem_ends() -> None:
    checked = routing("127.0.0.1:19092")
    checked.update(cluster(b1="10.0.0.1", b2="10.0.0.2"))
    checked.topology([], NOW_MS)

    checked.update(cluster(b1="10.0.0.1"))
    checked.topology([], NOW_MS)

    assert checked.problem is None


def test_routing_when_a_process_registers_from_another_host_then_the_address_is_a_problem() -> None:
    checked = routing("127.0.0.1:19092")
    checked.update(cluster(b1="10.0.0.1"))

    checked.topology([gateway(2, "10.0.0.2:19092", boot_id="boot-2")], NOW_MS)

    assert checked.problem is not None


def test_routing_when_a_gateway_of_the_first_version_is_on_loopback_then_no_client_gets_it() -> (
    None
):
    """Scenario 102: both versions run side by side during an upgrade."""
    checked = routing("10.0.0.1:19092")
    checked.update(cluster(b1="10.0.0.1", b2="10.0.0.2"))

    topology = checked.topology([gateway(2, "127.0.0.1:19092")], NOW_MS)

    assert checked.problem is None
    assert topology.address_of(2) == HostPort(host="10.0.0.1", port=19092)


def test_routing_when_all_is_on_one_host_then_clients_are_redirected_to_loopback_addresses() -> (
    None
):
    checked = routing("127.0.0.1:19092")
    checked.update(cluster(b1="10.0.0.1", b2="10.0.0.1"))

    topology = checked.topology([gateway(2, "127.0.0.1:19093", boot_id="boot-1")], NOW_MS)

    assert checked.problem is None
    assert topology.address_of(2) == HostPort(host="127.0.0.1", port=19093)


def test_routing_when_the_cluster_has_answered_then_knows_what_to_register() -> None:
    """The broker's advertised address, and that of the HTTP server on the broker's host."""
    checked = routing("10.0.0.1:19092")
    assert (checked.broker_address, checked.http_address) == ("", "")

    checked.update(cluster(b1="10.0.0.1", b2="10.0.0.2"))

    assert checked.broker_address == "10.0.0.1:9092"
    assert checked.http_address == "10.0.0.1:9465"
