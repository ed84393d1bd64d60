"""The doors of a gateway that stands for a whole cluster."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from rlm.broker.cluster import BrokerAddress, ClusterView
from rlm.config.values import HostPort
from rlm.gateway.endpoints.door import Door
from rlm.gateway.endpoints.door_plan import DoorPlan
from rlm.gateway.endpoints.endpoint_registry import ClusterFront, DoorSettings
from rsm.segment.errors import InvalidConfigError, NotFoundError
from tests.twins.clock import FakeClock

GATEWAY = HostPort(host="gateway", port=19_092)
HOUR_MS = 3_600_000


def broker(node_id: int) -> HostPort:
    return HostPort(host=f"broker-{node_id}", port=9092)


@dataclass
class Doorkeeper:
    """Whoever is let in; no socket is accepted on."""

    is_open: dict[str, Door] = field(default_factory=dict)

    def open(self, door: Door) -> None:
        self.is_open[door.name] = door

    def close(self, door: Door) -> None:
        del self.is_open[door.name]
        door.listener.close()


class Given:
    def __init__(self, listeners: Mapping[int, HostPort] | None = None) -> None:
        self.keeper = Doorkeeper()
        self.clock = FakeClock()
        self.unserved: list[int] = []
        self.taken: set[HostPort] = set()
        self.listened: list[HostPort] = []
        plan = DoorPlan(bootstrap=GATEWAY, advertised=GATEWAY, listeners=listeners or {})
        settings = DoorSettings(
            plan=lambda: plan, listen=self._listen, unserved=self.unserved.append
        )
        self.front = ClusterFront(settings, self.keeper, self.clock)

    def hear(self, *node_ids: int, **moved: HostPort) -> None:
        addresses = {n: moved.get(f"broker_{n}", broker(n)) for n in node_ids}
        brokers = {
            n: BrokerAddress(node_id=n, host=a.host, port=a.port) for n, a in addresses.items()
        }
        view = ClusterView(
            cluster_id="c", controller_id=None, brokers=brokers, topics={}, refused={}
        )
        self.front.hear(view)

    def address_of(self, node_id: int) -> HostPort | None:
        return self.front.topology((), 0).address_of(node_id)

    def upstreams(self, node_id: int) -> list[HostPort]:
        return list(self.keeper.is_open[f"broker-{node_id}"].upstreams())

    def _listen(self, address: HostPort) -> socket.socket:
        self.listened.append(address)
        if address in self.taken:
            raise InvalidConfigError("address can't be listened on", found=address)
        return socket.create_server(("127.0.0.1", 0))


@pytest.fixture
def given() -> Iterator[Given]:
    world = Given()
    yield world
    for door in world.keeper.is_open.values():
        door.listener.close()


def test_front_when_brokers_join_then_each_has_a_door_of_its_own(given: Given) -> None:
    given.hear(1, 2)
    given.hear(1, 2, 5)

    assert given.listened == [
        HostPort(host="gateway", port=port) for port in (19_094, 19_095, 19_098)
    ]
    assert given.address_of(5) == HostPort(host="gateway", port=19_098)
    assert given.upstreams(5) == [broker(5)]


def test_front_when_a_broker_is_unknown_yet_then_its_clients_are_led_to_the_bootstrap_door(
    given: Given,
) -> None:
    """R16: never past the gateway, whatever the broker's answer says."""
    given.hear(1)

    assert given.address_of(9) == GATEWAY


def test_front_when_a_port_is_taken_then_the_problem_is_counted_and_tried_again(
    given: Given, caplog: pytest.LogCaptureFixture
) -> None:
    door = HostPort(host="gateway", port=19_095)
    given.taken.add(door)
    given.hear(1, 2)
    given.hear(1, 2)
    while_taken = (given.address_of(2), list(given.unserved))
    given.taken.clear()
    given.hear(1, 2)

    assert while_taken == (GATEWAY, [1, 1])
    assert (given.address_of(2), given.unserved[-1]) == (door, 0)
    assert [each.message for each in caplog.records].count("a broker has no door") == 1


def test_front_when_the_map_lacks_a_broker_then_the_others_are_served() -> None:
    given = Given(listeners={1: HostPort(host="gateway", port=9101)})
    given.hear(1, 2)

    assert given.listened == [HostPort(host="gateway", port=9101)]
    assert (given.address_of(2), given.unserved) == (GATEWAY, [1])
    given.keeper.is_open["broker-1"].listener.close()


def test_front_when_a_broker_is_away_then_its_door_stays_and_leads_where_it_was(
    given: Given,
) -> None:
    """Scenario 45: clients find a broker again as soon as it is back."""
    given.hear(1, 2)
    address = given.address_of(2)
    given.hear(1)

    assert given.address_of(2) == address
    assert given.upstreams(2) == [broker(2)]


def test_front_when_another_broker_is_at_the_address_then_nobody_is_led_to_the_wrong_one(
    given: Given,
) -> None:
    given.hear(1, 2)
    given.hear(1, broker_1=broker(2))

    assert given.upstreams(2) == []
    assert given.upstreams(1) == [broker(2)]


def test_front_when_a_broker_is_gone_for_long_then_its_door_is_closed_until_it_is_back(
    given: Given,
) -> None:
    given.hear(1, 2)
    given.clock.advance(HOUR_MS)
    given.hear(1)
    while_gone = (set(given.keeper.is_open), given.address_of(2))
    given.hear(1, 2)

    assert while_gone == ({"broker-1"}, GATEWAY)
    assert set(given.keeper.is_open) == {"broker-1", "broker-2"}


def test_bootstrap_when_asked_then_offers_all_live_brokers_and_begins_with_another_each_time(
    given: Given,
) -> None:
    given.hear(1, 2, 3)
    given.hear(1, 3)

    offers = [given.front.any_upstreams() for _ in range(4)]

    assert {frozenset(offer) for offer in offers} == {frozenset({broker(1), broker(3)})}
    assert len({offer[0] for offer in offers}) == 2


def test_front_when_the_cluster_shows_no_broker_then_there_is_nothing_to_serve_by(
    given: Given,
) -> None:
    with pytest.raises(NotFoundError):
        given.hear()
