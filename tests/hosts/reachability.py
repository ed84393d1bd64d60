"""Checks on a host whether it reaches another one: see `VirtualHost.call`."""

from __future__ import annotations

import socket
from pathlib import Path

_TIMEOUT_S = 2.0


def connect(host: str, port: int) -> str:
    """Return the outcome of a connection: `accepted`, `refused`, `lost` or `unknown`."""
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_S):
            return "accepted"
    except ConnectionRefusedError:
        return "refused"
    except socket.gaierror:
        return "unknown"
    except OSError:
        return "lost"


def identity() -> dict[str, str]:
    """This host's name and the namespace of its network."""
    return {"name": socket.gethostname(), "network": str(Path("/proc/self/ns/net").readlink())}


def write_file(path: str, text: str) -> None:
    """Write a file as this host sees it."""
    Path(path).write_text(text)
