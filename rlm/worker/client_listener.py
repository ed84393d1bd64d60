"""Binds sockets for a gateway's clients; they listen only while a gateway serves.

The kernel completes connections to a listening socket even if no process accepts them. Those
clients then wait for a response, and some conclude from the silence that the broker is old. So this
module binds the socket, which reserves its address, but does not let it listen: the kernel refuses
connections at once. The process that serves starts to listen. When no such process is left, the
supervisor, which has the same socket, makes it stop listening. The kernel then resets connections
that no process has accepted.

**Stolen passwords:** on Linux, any user can bind an address on which no socket listens, if both
sockets have SO_REUSEADDR. That user would receive the clients' connections and passwords. So a
socket that refuses connections does not have the option. The socket must also have listened once,
because until then the kernel remembers that all sockets of the address had the option. A process
that serves sets the option again; otherwise, connections of an earlier process would prevent it
from listening.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import suppress

from rlm.config.values import HostPort
from rlm.process.child import ChildSpec
from rlm.process.supervisor import ChildStatus
from rlm.rest.http_server import bind_listener, listen_error


def bind_closed(listener: HostPort, *, key: str) -> socket.socket:
    """Bind a socket that refuses connections until a process listens on it.

    Raises InvalidConfigError with `key` if the address cannot be bound, for example because another
    socket listens on it.
    """
    bound = bind_listener(listener, key=key)
    if listener.port != 0:
        refuse_connections(bound)
        return bound
    # The kernel keeps a port that it chose only while the socket listens. So another socket binds
    # that port by its number.
    refusing = socket.socket(bound.family, bound.type)
    try:
        refusing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        address = bound.getsockname()
        bound.close()
        refusing.bind(address)
        refusing.listen()
    except OSError as error:
        refusing.close()
        raise listen_error(error, listener, key=key) from error
    refuse_connections(refusing)
    return refusing


def refuse_unserved(
    bound: socket.socket, servers: Iterable[ChildSpec], statuses: Iterable[ChildStatus]
) -> None:
    """Refuse connections while none of the processes that serve on `bound` runs."""
    running = {each.spec for each in statuses if each.pid is not None}
    if running.isdisjoint(servers):
        refuse_connections(bound)


def refuse_connections(bound: socket.socket) -> None:
    """Stop listening and reset unaccepted connections, but keep the address.

    Accepted connections continue. Do not call this while a process accepts connections on the
    socket: its accept call would fail. Does nothing if the socket does not listen, because a
    shutdown would break it.
    """
    if bound.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        with suppress(OSError):  # The socket may have just stopped listening.
            bound.shutdown(socket.SHUT_RDWR)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
