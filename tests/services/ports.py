"""Ports of this machine for the services of a test.

Each worker of a run has its own part of the range, so that two workers do not find the same port
free.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket

from tests.services.service import ServiceMissingError

# Below the range that systems take for outgoing connections: a port stays free while its broker
# is down, so a restart finds it again.
_FIRST_PORT = 15_000
_LAST_PORT = 32_000


def free_ports(count: int) -> tuple[int, ...]:
    """Return `count` different ports of 127.0.0.1 that nothing listens on.

    Raises ServiceMissingError if there are not as many.
    """
    # With the seeded generator, every session of tests would try the same ports first.
    candidates = random.SystemRandom().sample(_own_ports(), 50 + count)
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
    raise ServiceMissingError(
        f"cannot find {count} free ports between {_FIRST_PORT} and {_LAST_PORT}. Free some of them."
    )


def free_port_range(count: int) -> int:
    """Return the first of `count` ports of 127.0.0.1 in a row that nothing listens on.

    Raises ServiceMissingError if there are not as many.
    """
    own = _own_ports()
    for first in random.SystemRandom().sample(own[: len(own) - count], 50):
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise ServiceMissingError(
        f"cannot find {count} free ports in a row from {_FIRST_PORT} on. Free some of them."
    )


def is_listening(port: int) -> bool:
    """Return whether something takes connections at that port of 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _own_ports() -> range:
    """Return the ports of this worker of the run; all ports if the run has one process."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    worker_count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    size = (_LAST_PORT - _FIRST_PORT) // worker_count
    first = _FIRST_PORT + int(worker) * size
    return range(first, first + size)
