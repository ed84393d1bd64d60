"""Decides which registered processes are live, and chooses the clock. Pure.

| process | counts as gone if the age of its last heartbeat is at least |
| --- | --- |
| manager | three of its own heartbeat intervals |
| gateway | 15 s, regardless of its interval |

A process that registers as stopped is gone at once. A process that does not read back its own
heartbeats is not ready after three intervals, by the same function (`has_missed_heartbeats`).

Managers and gateways use the brokers' clock, as the newest record about the cluster shows it. So a
replayed registration does not revive a dead process, and no process looks gone while its heartbeats
cannot be read. For a command, that clock stops while no process writes; `now_of` then returns the
time of the command's own clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from rlmm.events.registration import ProcessReadiness, ProcessRegistered, ProcessRole, Registration

LEASE_MS = 15_000
"""The age at which a gateway's heartbeat no longer counts."""

MISSED_HEARTBEATS = 3
"""A manager is gone after this number of its heartbeat intervals without a heartbeat."""

SILENCE_MS = 90_000
"""The brokers' clock counts as stopped if the newest record is older than this."""


def is_live(registration: Registration, now_ms: int) -> bool:
    """Return whether a process has not stopped and its last heartbeat is recent enough."""
    process, silent_ms = registration.process, now_ms - registration.heartbeat_ms
    if has_stopped(registration):
        return False
    if process.role is ProcessRole.GATEWAY:
        return silent_ms < LEASE_MS
    return not has_missed_heartbeats(silent_ms, process.heartbeat_interval_ms)


def has_stopped(registration: Registration) -> bool:
    """Return whether a process registered as stopped, or an operator removed it."""
    return registration.process.readiness is ProcessReadiness.STOPPED


def has_missed_heartbeats(silent_ms: int, interval_ms: int) -> bool:
    """Return whether a silence lasted at least three heartbeat intervals."""
    return silent_ms >= MISSED_HEARTBEATS * interval_ms


def live_processes(
    registrations: Iterable[Registration], role: ProcessRole, now_ms: int
) -> tuple[ProcessRegistered, ...]:
    """Return the live processes of a role."""
    return tuple(
        found.process
        for found in registrations
        if found.process.role is role and is_live(found, now_ms)
    )


def now_of(broker_time_ms: int, wall_ms: int) -> int:
    """Return the time for a command's decisions: by its own clock if the brokers' has stopped."""
    return wall_ms if is_clock_stopped(broker_time_ms, wall_ms) else broker_time_ms


def is_clock_stopped(broker_time_ms: int, wall_ms: int) -> bool:
    """Return whether the newest record is older than SILENCE_MS, by a command's own clock."""
    return wall_ms - broker_time_ms > SILENCE_MS
