"""The endpoints of a gateway of a whole cluster."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.values import HostPort
from rlm.gateway.endpoints.endpoint import Endpoint
from rlm.gateway.endpoints.endpoint_addresses import EndpointAddresses
from rlm.gateway.endpoints.per_broker_routing import PerBrokerRouting, PerBrokerSettings
from rsm.segment.errors import InvalidConfigError, NotFoundError
from tests.fakes.clock import FakeClock
from tests.log_records import message_of

GATEWAY = HostPort(host="gateway", port=19_092)
HOUR_MS = 3_600_000


def broker(node_id: int) -> HostPort:
    return HostPort(host=f"broker-{node_id}", port=9092)


@dataclass
class OpenedEndpoints:
    """Admits every client, and opens no socket."""

    is_open: dict[str, Endpoint] = field(default_factory=dict)

    def open(self, endpoint: Endpoint) -> None:
        self.is_open[endpoint.name] = endpoint

    def close(self, endpoint: Endpoint) -> None:
        del self.is_open[endpoint.name]
        endpoint.listener.close()


class Given:
    def __init__(self, listeners: Mapping[int, HostPort] | None = None) -> None:
        self.endpoint_listener = OpenedEndpoints()
        self.clock = FakeClock()
        self.unserved: list[int] = []
        self.taken: set[HostPort] = set()
        self.listened: list[HostPort] = []
        plan = EndpointAddresses(bootstrap=GATEWAY, advertised=GATEWAY, listeners=listeners or {})
        settings = PerBrokerSettings(
            plan=lambda: plan, listen=self._listen, unserved=self.unserved.append
        )
        self.routing = PerBrokerRouting(settings, self.endpoint_listener, self.clock)

    def update(self, *node_ids: int, **moved: HostPort) -> None:
        addresses = {n: moved.get(f"broker_{n}", broker(n)) for n in node_ids}
        brokers = {
            n: BrokerAddress(node_id=n, host=a.host, port=a.port) for n, a in addresses.items()
        }
        view = ClusterView(
            cluster_id="c", controller_id=None, brokers=brokers, topics={}, refused={}
        )
        self.routing.update(view)

    def address_of(self, node_id: int) -> HostPort | None:
        return self.routing.topology((), 0).address_of(node_id)

    def upstreams(self, node_id: int) -> list[HostPort]:
        return list(self.endpoint_listener.is_open[f"broker-{node_id}"].upstreams())

    def _listen(self, address: HostPort) -> socket.socket:
        self.listened.append(address)
        if address in self.taken:
            raise InvalidConfigError("cannot listen on the address", found=address)
        return socket.create_server(("127.0.0.1", 0))


@pytest.fixture
def given() -> Iterator[Given]:
    world = Given()
    yield world
    for endpoint in world.endpoint_listener.is_open.values():
        endpoint.listener.close()


def test_registry_when_brokers_join_then_each_has_an_endpoint_of_its_own(given: Given) -> None:
    given.update(1, 2)
    given.update(1, 2, 5)

    assert given.listened == [
        HostPort(host="gateway", port=port) for port in (19_094, 19_095, 19_098)
    ]
    assert given.address_of(5) == HostPort(host="gateway", port=19_098)
    assert given.upstreams(5) == [broker(5)]


def test_registry_when_a_broker_is_unknown_then_its_clients_get_the_bootstrap_endpoint(
    given: Given,
) -> None:
    """R16: clients never get the broker's own address."""
    given.update(1)

    assert given.address_of(9) == GATEWAY


def test_registry_when_a_port_is_taken_then_the_problem_is_counted_and_tried_again(
    given: Given, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = HostPort(host="gateway", port=19_095)
    given.taken.add(endpoint)
    given.update(1, 2)
    given.update(1, 2)
    while_taken = (given.address_of(2), list(given.unserved))
    given.taken.clear()
    given.update(1, 2)

    assert while_taken == (GATEWAY, [1, 1])
    assert (given.address_of(2), given.unserved[-1]) == (endpoint, 0)
    logged = [message_of(each) for each in caplog.records]
    assert logged.count("cannot open an endpoint for a broker") == 1


def test_registry_when_the_map_lacks_a_broker_then_the_others_are_served() -> None:
    given = Given(listeners={1: HostPort(host="gateway", port=9101)})
    given.update(1, 2)

    assert given.listened == [HostPort(host="gateway", port=9101)]
    assert (given.address_of(2), given.unserved) == (GATEWAY, [1])
    given.endpoint_listener.is_open["broker-1"].listener.close()


def test_registry_when_a_broker_is_away_then_its_endpoint_stays_and_leads_to_its_last_address(
    given: Given,
) -> None:
    """Scenario 45: clients find a broker again as soon as it is back."""
    given.update(1, 2)
    address = given.address_of(2)
    given.update(1)

    assert given.address_of(2) == address
    assert given.upstreams(2) == [broker(2)]


def test_registry_when_another_broker_is_at_the_address_then_no_client_reaches_the_wrong_one(
    given: Given,
) -> None:
    given.update(1, 2)
    given.update(1, broker_1=broker(2))

    assert given.upstreams(2) == []
    assert given.upstreams(1) == [broker(2)]


def test_registry_when_a_broker_is_gone_for_long_then_its_endpoint_is_closed_until_it_is_back(
    given: Given,
) -> None:
    given.update(1, 2)
    given.clock.advance(HOUR_MS)
    given.update(1)
    while_gone = (set(given.endpoint_listener.is_open), given.address_of(2))
    given.update(1, 2)

    assert while_gone == ({"broker-1"}, GATEWAY)
    assert set(given.endpoint_listener.is_open) == {"broker-1", "broker-2"}


def test_bootstrap_when_asked_then_offers_all_live_brokers_and_begins_with_another_each_time(
    given: Given,
) -> None:
    given.update(1, 2, 3)
    given.update(1, 3)

    offers = [given.routing.any_upstreams() for _ in range(4)]

    assert {frozenset(offer) for offer in offers} == {frozenset({broker(1), broker(3)})}
    assert len({offer[0] for offer in offers}) == 2


def test_registry_when_the_cluster_shows_no_broker_then_there_is_nothing_to_serve_by(
    given: Given,
) -> None:
    with pytest.raises(NotFoundError):
        given.update()
