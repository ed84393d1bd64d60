"""The sockets that a gateway's clients connect to: bound all the time, open only while it serves.

The kernel completes connections to a listening socket whether or not a process accepts them. Their
clients then wait for an answer, and some take its absence for a broker of an old version. So a
socket here is bound, which keeps its address, but it does not listen: the kernel refuses
connections at once. The process that serves begins to listen. When no such process is left, the
supervisor, which has the same socket, stops it from listening: the kernel resets the connections
that nobody has accepted.

Linux lets another socket, of any user, have an address that nobody listens at if both have
SO_REUSEADDR. That user would get the clients and their passwords. So a socket that refuses
connections does not have the option, and no other can be bound there. It must have listened once:
the kernel remembers of an address that all its sockets had the option until one listens. A process
that serves sets the option again, or connections of an earlier process would forbid it to listen.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import suppress

from rlm.config.values import HostPort
from rlm.process.child import ChildSpec
from rlm.process.supervisor import ChildStatus
from rlm.rest.http_server import bind_listener
from rsm.segment.errors import InvalidConfigError


def bind_closed(listener: HostPort, *, key: str) -> socket.socket:
    """A socket at the address that refuses connections until a process listens on it.

    InvalidConfigError naming `key` if the address cannot be bound or another process listens there.
    """
    bound = bind_listener(listener, key=key)
    if listener.port != 0:
        refuse_connections(bound)
        return bound
    # The kernel keeps a port that it chose itself only while the socket listens, so another socket
    # asks for that port by its number.
    refusing = socket.socket(bound.family, bound.type)
    try:
        refusing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        address = bound.getsockname()
        bound.close()
        refusing.bind(address)
        refusing.listen()
    except OSError as error:
        refusing.close()
        raise InvalidConfigError(
            "address cannot be listened on", key=key, found=listener, reason=error.strerror
        ) from error
    refuse_connections(refusing)
    return refusing


def refuse_unserved(
    bound: socket.socket, servers: Iterable[ChildSpec], statuses: Iterable[ChildStatus]
) -> None:
    """Refuse connections while none of the processes that serve at `bound` runs."""
    running = {each.spec for each in statuses if each.pid is not None}
    if running.isdisjoint(servers):
        refuse_connections(bound)


def refuse_connections(bound: socket.socket) -> None:
    """Stop listening, reset the connections that nobody has accepted, and keep the address.

    Accepted connections go on. Not while a process waits for connections on it: it would find it
    broken. Does nothing to a socket that does not listen, which a shutdown would spoil.
    """
    if bound.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        with suppress(OSError):  # it listens no more
            bound.shutdown(socket.SHUT_RDWR)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
