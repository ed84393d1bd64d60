from __future__ import annotations

from rlm.config.values import HostPort
from rlm.gateway.listener.stray_connections import StrayConnections
from rlm.gateway.model.advertised_brokers import GatewayTopology

_OWN = HostPort(host="own", port=1)


def _topology(
    *live: int, away: tuple[int, ...] = (), heartbeats_ms: dict[int, int] | None = None
) -> GatewayTopology:
    """The gateway is that of broker 0, and clients of absent gateways are redirected to it."""
    addresses = {node_id: HostPort(host=f"gw-{node_id}", port=1) for node_id in (*live, *away)}
    return GatewayTopology(
        live={0: _OWN, **{node_id: addresses[node_id] for node_id in live}},
        last_known=addresses,
        elsewhere=_OWN,
        own=frozenset({_OWN}),
        heartbeats_ms=heartbeats_ms or {},
    )


def _look_often(stray_connections: StrayConnections, topology: GatewayTopology) -> None:
    """Look ten times, two connections each, so that earlier ones are too old to be stray."""
    for number in range(2, 21, 2):
        found = stray_connections.find_first_to_close(topology, next_number=number, now_s=0.0)
        assert found is None


def test_strays_when_a_brokers_gateway_is_back_then_those_who_came_meanwhile_leave() -> None:
    """R16: also those of earlier looks, because other gateways may notice an absence first."""
    stray_connections = StrayConnections()
    _look_often(stray_connections, _topology(2))
    for at_s, number in ((1.0, 24), (2.0, 30)):
        found = stray_connections.find_first_to_close(
            _topology(away=(2,)), next_number=number, now_s=at_s
        )
        assert found is None
    assert stray_connections.find_first_to_close(_topology(2), next_number=35, now_s=3.0) == 12


def test_strays_when_some_came_again_to_the_wrong_place_then_leave_once_more() -> None:
    stray_connections = StrayConnections()
    stray_connections.find_first_to_close(_topology(away=(2,)), next_number=1, now_s=0.0)
    assert stray_connections.find_first_to_close(_topology(2), next_number=5, now_s=1.0) == 0
    assert stray_connections.find_first_to_close(_topology(2), next_number=7, now_s=5.9) is None
    assert stray_connections.find_first_to_close(_topology(2), next_number=8, now_s=6.0) == 5
    assert stray_connections.find_first_to_close(_topology(2), next_number=9, now_s=60.0) is None


def test_strays_when_this_gateway_has_just_started_then_none_is_closed() -> None:
    stray_connections = StrayConnections()
    assert stray_connections.find_first_to_close(_topology(2), next_number=3, now_s=0.0) is None
    assert stray_connections.find_first_to_close(_topology(2), next_number=8, now_s=60.0) is None


def test_strays_when_one_of_two_is_back_then_those_of_the_other_stay() -> None:
    stray_connections = StrayConnections()
    _look_often(stray_connections, _topology(1, 2))
    for number in range(22, 41, 2):
        stray_connections.find_first_to_close(
            _topology(2, away=(1,)), next_number=number, now_s=1.0
        )
    stray_connections.find_first_to_close(_topology(away=(1, 2)), next_number=42, now_s=2.0)
    found = stray_connections.find_first_to_close(
        _topology(2, away=(1,)), next_number=44, now_s=3.0
    )
    assert found == 32
    assert stray_connections.find_first_to_close(_topology(1, 2), next_number=46, now_s=4.0) == 12


def test_strays_when_a_broker_has_its_first_gateway_then_all_who_came_before_leave() -> None:
    stray_connections = StrayConnections()
    stray_connections.find_first_to_close(_topology(), next_number=4, now_s=0.0)
    assert stray_connections.find_first_to_close(_topology(2), next_number=6, now_s=1.0) == 0
    # A gateway that reads the change later may have redirected further clients here.
    assert stray_connections.find_first_to_close(_topology(2), next_number=9, now_s=6.0) == 6
    assert stray_connections.find_first_to_close(_topology(2), next_number=9, now_s=60.0) is None


def test_strays_when_the_gateways_clients_were_redirected_elsewhere_then_none_is_closed() -> None:
    other = HostPort(host="gw-1", port=1)
    away = GatewayTopology(
        live={0: _OWN}, last_known={2: other}, elsewhere=other, own=frozenset({_OWN})
    )
    stray_connections = StrayConnections()
    stray_connections.find_first_to_close(away, next_number=4, now_s=0.0)
    assert stray_connections.find_first_to_close(_topology(2), next_number=6, now_s=1.0) is None


def test_strays_when_a_gateway_was_away_between_two_looks_then_those_who_came_leave() -> None:
    """Other gateways may have redirected clients here, because they knew of the absence sooner."""
    stray_connections = StrayConnections()
    _look_often(stray_connections, _topology(2, heartbeats_ms={2: 1_000}))
    looks = [({2: 6_000}, 22), ({2: 6_000}, 24), ({2: 21_000}, 26)]
    left = [
        stray_connections.find_first_to_close(
            _topology(2, heartbeats_ms=heard), next_number=number, now_s=at_s
        )
        for at_s, (heard, number) in enumerate(looks)
    ]
    assert left == [None, None, 12]
    still = _topology(2, heartbeats_ms={2: 26_000})
    assert stray_connections.find_first_to_close(still, next_number=28, now_s=6.0) is None
    assert stray_connections.find_first_to_close(still, next_number=28, now_s=7.0) == 26


def test_strays_when_a_gateway_registers_late_but_within_its_lease_then_none_is_closed() -> None:
    stray_connections = StrayConnections()
    for at_s, heartbeat_ms in enumerate((1_000, 13_999, 26_998)):
        live = _topology(2, heartbeats_ms={2: heartbeat_ms})
        assert stray_connections.find_first_to_close(live, next_number=at_s, now_s=at_s) is None


def test_strays_when_an_absent_gateways_clients_are_redirected_elsewhere_then_none_is_closed() -> (
    None
):
    def topology(heartbeat_ms: int) -> GatewayTopology:
        return GatewayTopology(
            live={0: _OWN, 1: HostPort(host="gw-1", port=1), 3: HostPort(host="gw-3", port=1)},
            own=frozenset({_OWN}),
            heartbeats_ms={1: heartbeat_ms},
        )

    stray_connections = StrayConnections()
    assert stray_connections.find_first_to_close(topology(1_000), next_number=2, now_s=0.0) is None
    # Clients of 1 were redirected to 3: the live gateways take turns.
    assert stray_connections.find_first_to_close(topology(20_000), next_number=7, now_s=1.0) is None


def test_strays_when_an_absence_was_noticed_then_not_all_since_the_last_heartbeat_leave() -> None:
    stray_connections = StrayConnections()
    alive, away = {2: 1_000}, (2,)
    _look_often(stray_connections, _topology(2, heartbeats_ms=alive))
    stray_connections.find_first_to_close(
        _topology(away=away, heartbeats_ms=alive), next_number=22, now_s=2.0
    )
    back = _topology(2, heartbeats_ms={2: 30_000})
    assert stray_connections.find_first_to_close(back, next_number=24, now_s=3.0) == 12


def test_strays_when_several_were_away_between_two_looks_then_those_of_each_leave() -> None:
    """With two of four gateways away, clients are redirected differently than with one."""

    def topology(heartbeat_ms: int) -> GatewayTopology:
        addresses = {node_id: HostPort(host=f"gw-{node_id}", port=1) for node_id in (1, 2, 3)}
        return GatewayTopology(
            live={0: _OWN, **addresses},
            last_known={0: _OWN, **addresses},
            own=frozenset({_OWN}),
            heartbeats_ms={1: heartbeat_ms, 2: heartbeat_ms},
        )

    stray_connections = StrayConnections()
    assert stray_connections.find_first_to_close(topology(1_000), next_number=2, now_s=0.0) is None
    assert stray_connections.find_first_to_close(topology(1_000), next_number=4, now_s=1.0) is None
    # With 0 and 3 live, clients of 2 were redirected to 0; with 0, 1 and 3 live, to 3.
    assert stray_connections.find_first_to_close(topology(20_000), next_number=7, now_s=2.0) == 0
