"""Finds the local address from which this host connects to another address."""

from __future__ import annotations

import socket
from contextlib import closing

from rsm.segment.errors import RetriableError


def local_address_towards(host: str, port: int) -> str:
    """Return the IP address that a connection to `host:port` would come from.

    Reads the kernel's routes and sends nothing. May wait for DNS. Raises RetriableError if the name
    does not resolve or there is no route.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[
            0
        ]
        with closing(socket.socket(family, kind, protocol)) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except (OSError, UnicodeError) as error:
        raise RetriableError(
            "cannot find the address from which this host connects to the broker",
            address=f"{host}:{port}",
            reason=error,
        ) from error
