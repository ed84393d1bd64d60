"""Ports of this machine for the services of a test."""

from __future__ import annotations

import contextlib
import random
import socket

# Below the range that systems take for outgoing connections: a port stays free while its broker
# is down, so a restart finds it again.
_FIRST_PORT = 15_000
_LAST_PORT = 32_000


def free_ports(count: int) -> tuple[int, ...]:
    """Return `count` different ports of 127.0.0.1 that nothing listens on."""
    # Not the seeded generator: every session of tests would try the same ports first.
    candidates = random.SystemRandom().sample(range(_FIRST_PORT, _LAST_PORT), 50 + count)
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in candidates:
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                return tuple(found)
    raise RuntimeError(f"no {count} free ports between {_FIRST_PORT} and {_LAST_PORT}")


def free_port_range(count: int) -> int:
    """Return the first of `count` ports of 127.0.0.1 in a row that nothing listens on."""
    for first in random.SystemRandom().sample(range(_FIRST_PORT, _LAST_PORT - count), 50):
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise RuntimeError(f"no {count} free ports in a row")


def is_listening(port: int) -> bool:
    """Whether something takes connections at that port of 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
