"""Trims wait for the live gateways."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlm.policy.peers.gateways import live_gateways
from rlm.policy.trim_gate import TrimDecision, decide_trim
from rlmm.events.registration import (
    NO_BROKER,
    AppliedPosition,
    ProcessRegistered,
    ProcessRole,
    Registration,
)
from rlmm.positions import MetadataPosition
from rlmm.registration import LEASE_MS
from tests.unit.rlm.policy.views import NOW_MS, Given, remote

SEGMENTS = tuple(
    remote(start, start + 100, changed_at=MetadataPosition(partition=3, offset=start))
    for start in range(0, 1000, 100)
)


def gateway(
    *applied: tuple[int, int], role: ProcessRole = ProcessRole.GATEWAY, broker_id: int = 1
) -> ProcessRegistered:
    return ProcessRegistered(
        event_id=UUID(int=1),
        process_id=UUID(int=2),
        role=role,
        broker_id=broker_id,
        http_address="",
        heartbeat_interval_ms=5_000,
        version="1",
        gateway_address="gw:19092",
        applied=tuple(AppliedPosition(partition=p, offset=o) for p, o in applied),
    )


def decided(*gateways: ProcessRegistered) -> TrimDecision:
    return decide_trim(Given(segments=SEGMENTS, gateways=gateways).view())


@pytest.mark.parametrize(
    ("gateways", "offset"),
    [
        ((), 900),
        ((gateway((0, 8), (3, 901)),), 900),
        ((gateway((0, 7), (3, 901)),), None),
        ((gateway((3, 901)),), None),
        ((gateway((0, 8), (3, 901)), gateway((0, 7), (3, 901))), None),
    ],
)
def test_trim_when_a_gateway_has_not_read_the_policy_then_nothing_is_trimmed(
    gateways: tuple[ProcessRegistered, ...], offset: int | None
) -> None:
    """R15: for that gateway the topic is not tiered, and trimmed offsets are out of range."""
    position = MetadataPosition(partition=0, offset=7)
    given = Given(segments=SEGMENTS, gateways=gateways, policy_position=position)

    assert decide_trim(given.view()).offset == offset


@pytest.mark.parametrize(
    ("gateways", "offset"),
    [
        ((), 900),
        ((gateway((3, 901)),), 900),
        ((gateway((3, 500)),), 500),
        ((gateway((3, 501)),), 600),
        ((gateway((3, 501), broker_id=NO_BROKER),), 600),
        ((gateway((3, 901)), gateway((3, 300))), 300),
        ((gateway((2, 901)),), None),
        ((gateway(),), None),
    ],
)
def test_trim_when_a_gateway_lags_then_stops_before_what_it_does_not_know(
    gateways: tuple[ProcessRegistered, ...], offset: int | None
) -> None:
    """R15: the trim waits until each live gateway has applied the segment's FINISHED."""
    assert decided(*gateways).offset == offset


def test_trim_when_a_gateway_lags_then_says_which() -> None:
    blocked = decided(gateway((3, 500))).blocked

    assert blocked is not None
    assert (blocked.reason, blocked.values["gateway"]) == ("gateway_behind", "gw:19092")


def test_gateway_when_past_its_lease_then_is_not_waited_for() -> None:
    """R15: by the brokers' clock."""

    def live(role: ProcessRole, heartbeat_ms: int) -> bool:
        found = Registration(process=gateway(role=role), heartbeat_ms=heartbeat_ms)
        return bool(live_gateways([found], NOW_MS))

    assert live(ProcessRole.GATEWAY, NOW_MS - LEASE_MS + 1)
    assert not live(ProcessRole.GATEWAY, NOW_MS - LEASE_MS)
    assert not live(ProcessRole.MANAGER, NOW_MS)
