"""Decides which registered processes are live, and by which clock. Pure.

| process | counts as gone when its last heartbeat is |
| --- | --- |
| manager | three of its own heartbeat intervals old |
| gateway | 15 s old, whatever its interval |

At that age the process is gone; one millisecond earlier it is live. A process that registers as
stopped is gone at once. A process whose own heartbeats do not come back is not ready after three
intervals, by the same function (`has_missed_heartbeats`).

Managers and gateways use the brokers' clock, so that a replayed registration does not revive a dead
process. A command that reads the metadata once sees that clock stop while no process writes;
`now_of` then returns the time of the command's own clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from rlmm.events.registration import ProcessReadiness, ProcessRegistered, ProcessRole, Registration

LEASE_MS = 15_000
"""How long a gateway's heartbeat counts."""

MISSED_HEARTBEATS = 3
"""A manager is gone after this number of missed heartbeats, each after its own interval."""

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
    """Return whether the process registered that it stops, or an operator forgot it."""
    return registration.process.readiness is ProcessReadiness.STOPPED


def has_missed_heartbeats(silent_ms: int, interval_ms: int) -> bool:
    """Return whether a silence is as long as three heartbeats of this interval."""
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
    """Return the time for a command's decisions: its own clock's if the brokers' has stopped."""
    return wall_ms if is_clock_stopped(broker_time_ms, wall_ms) else broker_time_ms


def is_clock_stopped(broker_time_ms: int, wall_ms: int) -> bool:
    """Return whether the brokers' clock has stopped, by a command's own clock."""
    return wall_ms - broker_time_ms > SILENCE_MS
