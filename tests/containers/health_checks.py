"""Runs the health checks of containers where Podman has no systemd to start them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import httpx

_PAUSE_S = 1.0
_SETTLED_PAUSE_ROUNDS = 15
"""A healthy container is checked again only in each round whose number is a multiple of this."""


def run_health_checks(
    socket: Path, *, is_running: Callable[[], bool], in_each_round: Callable[[], None]
) -> None:
    """Run the health checks of all running containers again and again, while `is_running`."""
    pause = threading.Event()
    transport = httpx.HTTPTransport(uds=str(socket))
    healthy: set[str] = set()
    with httpx.Client(transport=transport, base_url="http://podman/v4.0.0/libpod") as client:
        rounds = 0
        while is_running():
            rounds += 1
            in_each_round()
            if rounds % _SETTLED_PAUSE_ROUNDS == 0:
                healthy.clear()
            healthy |= _check_others_than(healthy, client)
            pause.wait(_PAUSE_S)


def _check_others_than(healthy: set[str], client: httpx.Client) -> set[str]:
    """Check the containers that are not in `healthy`, and return those that pass."""
    passed = set()
    try:
        running = [each["Id"] for each in client.get("/containers/json").json()]
        for container in running:
            if container in healthy:
                continue
            # For a container without a health check, Podman answers with a conflict.
            answer = client.get(f"/containers/{container}/healthcheck", timeout=30)
            if answer.json().get("Status") == "healthy" or answer.is_client_error:
                passed.add(container)
    except httpx.HTTPError:
        pass  # the service starts or ends, or a check hangs: the next round asks again
    return passed
