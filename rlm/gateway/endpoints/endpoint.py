"""An endpoint: where clients come in, and which brokers they may be led on to."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm.config.values import HostPort


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Endpoint:
    """`listener` is bound, and listens once the endpoint is open. Its opener closes it.

    `upstreams` gives the brokers' addresses as of now, the one to try first in front; none: there
    is no broker behind it. `upstreams_of_name` does for clients that ask for a server name in their
    TLS handshake, if it is given. They are called on the server's loop and do not wait.
    """

    name: str
    listener: socket.socket
    upstreams: Callable[[], Sequence[HostPort]]
    upstreams_of_name: Callable[[str], Sequence[HostPort]] | None = None

    def upstreams_for(self, server_name: str | None) -> Sequence[HostPort]:
        """The brokers for a client that asked for that name, or for none."""
        if server_name is None or self.upstreams_of_name is None:
            return self.upstreams()
        return self.upstreams_of_name(server_name)
