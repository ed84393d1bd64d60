"""Defines endpoints: the addresses that a gateway listens on, and the brokers reached there."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm.config.values import HostPort


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Endpoint:
    """Represents an address that a gateway listens on, and its upstreams.

    `listener` is bound; the server that opens the endpoint listens on it and closes it.
    `upstreams` returns the current broker addresses in the order to try; empty if no broker is
    known. `upstreams_of_name`, if set, does the same for clients that send a server name in their
    TLS handshake. The server calls both functions on its loop, so they must not block.
    """

    name: str
    listener: socket.socket
    upstreams: Callable[[], Sequence[HostPort]]
    upstreams_of_name: Callable[[str], Sequence[HostPort]] | None = None

    def upstreams_for(self, server_name: str | None) -> Sequence[HostPort]:
        """Return the upstreams of a client; `server_name` is None if the client sent no name."""
        if server_name is None or self.upstreams_of_name is None:
            return self.upstreams()
        return self.upstreams_of_name(server_name)
