"""Which registered processes are live: the one rule, and the time to judge it by.

A manager is live until it has missed three heartbeats, a gateway as long as its lease holds.

Managers and gateways judge by the brokers' clock, so that a replayed registration does not revive
the dead. A command that reads the metadata once sees that clock stand still while nobody writes:
`now_of` gives it the time. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from rlmm.events.processes import ProcessRegistered, ProcessRole
from rlmm.spi import Registration

LEASE_MS = 15_000
"""Of a gateway."""

MISSED_HEARTBEATS = 3
"""Of a manager, each after its own interval."""

SILENCE_MS = 90_000
"""The brokers' clock is taken for stopped if the newest record is older than this."""


def is_live(registration: Registration, now_ms: int) -> bool:
    """Whether a process's last heartbeat is young enough."""
    process = registration.process
    if process.role is ProcessRole.GATEWAY:
        allowed_ms = LEASE_MS
    else:
        allowed_ms = MISSED_HEARTBEATS * process.heartbeat_interval_ms
    return now_ms - registration.heartbeat_ms < allowed_ms


def live_processes(
    registrations: Iterable[Registration], role: ProcessRole, now_ms: int
) -> tuple[ProcessRegistered, ...]:
    """The live processes of a role."""
    return tuple(
        found.process
        for found in registrations
        if found.process.role is role and is_live(found, now_ms)
    )


def now_of(broker_time_ms: int, wall_ms: int) -> int:
    """The time by which a command judges: its own clock's if the brokers' has stopped."""
    return wall_ms if wall_ms - broker_time_ms > SILENCE_MS else broker_time_ms
