from __future__ import annotations

from rlm.config.values import HostPort
from rlm.gateway.guests import Guests
from rlm.gateway.topology import GatewayTopology

_OWN = HostPort(host="own", port=1)


def _topology(*live: int, away: tuple[int, ...] = ()) -> GatewayTopology:
    """This is the gateway of broker 0, and all that are away are led here."""
    addresses = {node_id: HostPort(host=f"gw-{node_id}", port=1) for node_id in (*live, *away)}
    return GatewayTopology(
        live={0: _OWN, **{node_id: addresses[node_id] for node_id in live}},
        last_known=addresses,
        elsewhere=_OWN,
        own=frozenset({_OWN}),
    )


def test_guests_when_a_brokers_gateway_is_back_then_those_who_came_meanwhile_leave() -> None:
    """R16: from the last look before it was known that it was away."""
    guests = Guests()
    assert guests.leaving_from(_topology(2), next_number=10, now_s=0.0) is None
    assert guests.leaving_from(_topology(away=(2,)), next_number=14, now_s=1.0) is None
    assert guests.leaving_from(_topology(away=(2,)), next_number=20, now_s=2.0) is None
    assert guests.leaving_from(_topology(2), next_number=25, now_s=3.0) == 10


def test_guests_when_some_came_again_to_the_wrong_place_then_leave_once_more() -> None:
    guests = Guests()
    guests.leaving_from(_topology(away=(2,)), next_number=1, now_s=0.0)
    assert guests.leaving_from(_topology(2), next_number=5, now_s=1.0) == 0
    assert guests.leaving_from(_topology(2), next_number=7, now_s=5.9) is None
    assert guests.leaving_from(_topology(2), next_number=8, now_s=6.0) == 5
    assert guests.leaving_from(_topology(2), next_number=9, now_s=60.0) is None


def test_guests_when_one_of_two_is_back_then_those_of_the_other_stay_its_guests() -> None:
    guests = Guests()
    guests.leaving_from(_topology(1, 2), next_number=3, now_s=0.0)
    guests.leaving_from(_topology(2, away=(1,)), next_number=6, now_s=1.0)
    guests.leaving_from(_topology(away=(1, 2)), next_number=9, now_s=2.0)
    assert guests.leaving_from(_topology(2, away=(1,)), next_number=12, now_s=3.0) == 6
    assert guests.leaving_from(_topology(1, 2), next_number=15, now_s=4.0) == 3


def test_guests_when_a_broker_has_its_first_gateway_then_all_who_came_before_leave() -> None:
    guests = Guests()
    guests.leaving_from(_topology(), next_number=4, now_s=0.0)
    assert guests.leaving_from(_topology(2), next_number=6, now_s=1.0) == 0
    # And those whom another gateway, which heard of it later, has led here since.
    assert guests.leaving_from(_topology(2), next_number=9, now_s=6.0) == 6
    assert guests.leaving_from(_topology(2), next_number=9, now_s=60.0) is None


def test_guests_when_the_gateways_clients_were_led_elsewhere_then_nobody_leaves() -> None:
    other = HostPort(host="gw-1", port=1)
    away = GatewayTopology(
        live={0: _OWN}, last_known={2: other}, elsewhere=other, own=frozenset({_OWN})
    )
    guests = Guests()
    guests.leaving_from(away, next_number=4, now_s=0.0)
    assert guests.leaving_from(_topology(2), next_number=6, now_s=1.0) is None
