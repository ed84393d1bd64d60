"""How much the system holds of what a client on this host has not taken yet.

Elsewhere the system itself finds out how much has to be under way.
"""

from __future__ import annotations

import socket
from contextlib import suppress

_RELAYED_BYTES = 256 * 1024
_ANSWERED_BYTES = 2 << 20


def keep_little_under_way(client: socket.socket) -> None:
    """For what is passed on as it comes: there is no distance to fill within one host.

    And what waits leaves the processor's caches.
    """
    _set(client, _RELAYED_BYTES)


def take_answers_whole(client: socket.socket) -> None:
    """For what is there at once: an answer of usual size is written without a wait."""
    _set(client, _ANSWERED_BYTES)


def _set(client: socket.socket, size_bytes: int) -> None:
    if client.family not in (socket.AF_INET, socket.AF_INET6):
        return
    with suppress(OSError):  # it has left already
        if client.getpeername()[0] == client.getsockname()[0]:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size_bytes)
