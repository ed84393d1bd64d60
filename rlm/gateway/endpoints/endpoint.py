"""An endpoint: an address that a gateway listens on, and the brokers of its clients."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm.config.values import HostPort


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Endpoint:
    """An address that a gateway listens on, with its upstreams.

    `listener` is bound; the server that opens the endpoint listens on it and closes it.
    `upstreams` returns the current broker addresses in the order to try; empty without a broker.
    `upstreams_of_name`, if set, does so for clients that send a server name in their TLS
    handshake. The server calls both on its loop; they do not block.
    """

    name: str
    listener: socket.socket
    upstreams: Callable[[], Sequence[HostPort]]
    upstreams_of_name: Callable[[str], Sequence[HostPort]] | None = None

    def upstreams_for(self, server_name: str | None) -> Sequence[HostPort]:
        """Return the brokers for a client that sent this server name, or None."""
        if server_name is None or self.upstreams_of_name is None:
            return self.upstreams()
        return self.upstreams_of_name(server_name)
