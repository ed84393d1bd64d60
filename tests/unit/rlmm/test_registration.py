"""Managers, gateways and commands use one rule for live processes."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlmm.events.registration import ProcessReadiness, ProcessRegistered, ProcessRole, Registration
from rlmm.registration import (
    LEASE_MS,
    MISSED_HEARTBEATS,
    SILENCE_MS,
    has_missed_heartbeats,
    is_live,
    live_processes,
    now_of,
)

_NOW_MS = 10_000_000
_INTERVAL_MS = 7_000


def _registration(role: ProcessRole, age_ms: int) -> Registration:
    process = ProcessRegistered(
        event_id=UUID(int=1),
        process_id=UUID(int=2),
        role=role,
        broker_id=1,
        http_address="",
        heartbeat_interval_ms=_INTERVAL_MS,
        version="1",
    )
    return Registration(process=process, heartbeat_ms=_NOW_MS - age_ms)


@pytest.mark.parametrize(
    ("role", "allowed_ms"),
    [
        (ProcessRole.MANAGER, MISSED_HEARTBEATS * _INTERVAL_MS),
        (ProcessRole.GATEWAY, LEASE_MS),
    ],
)
def test_process_when_its_time_is_over_then_not_live(role: ProcessRole, allowed_ms: int) -> None:
    last = _registration(role, allowed_ms - 1)
    over = _registration(role, allowed_ms)

    assert is_live(last, _NOW_MS)
    assert not is_live(over, _NOW_MS)
    assert live_processes([last, over], role, _NOW_MS) == (last.process,)


@pytest.mark.parametrize("role", ProcessRole)
def test_process_when_it_registers_as_stopped_then_gone_at_once(role: ProcessRole) -> None:
    beating = _registration(role, 0)
    process = replace(beating.process, readiness=ProcessReadiness.STOPPED)

    stopped = replace(beating, process=process)

    assert not is_live(stopped, _NOW_MS)
    assert live_processes([stopped], role, _NOW_MS) == ()


def test_live_processes_when_of_another_role_then_left_out() -> None:
    gateway = _registration(ProcessRole.GATEWAY, 0)

    assert live_processes([gateway], ProcessRole.MANAGER, _NOW_MS) == ()


@pytest.mark.parametrize(
    ("silent_ms", "is_missed"),
    [(0, False), (3 * _INTERVAL_MS - 1, False), (3 * _INTERVAL_MS, True)],
)
def test_heartbeats_when_silent_for_three_intervals_then_missed_as_others_count_it(
    silent_ms: int, *, is_missed: bool
) -> None:
    """A process is ready if, and only if, the others count it as live."""
    manager = _registration(ProcessRole.MANAGER, silent_ms)

    assert has_missed_heartbeats(silent_ms, _INTERVAL_MS) is is_missed
    assert is_live(manager, _NOW_MS) is not is_missed


def test_time_when_nothing_was_written_for_long_then_is_the_callers() -> None:
    """If all processes are dead, the topic's clock does not advance."""
    assert now_of(_NOW_MS, _NOW_MS + SILENCE_MS) == _NOW_MS
    assert now_of(_NOW_MS, _NOW_MS - 24 * 3600 * 1000) == _NOW_MS
    assert now_of(_NOW_MS, _NOW_MS + SILENCE_MS + 1) == _NOW_MS + SILENCE_MS + 1
