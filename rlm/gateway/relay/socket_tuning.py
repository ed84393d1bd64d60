"""What is set of a connection whose other end is on this host, where there is no network between.

Elsewhere the system itself finds out how much has to be under way, and how fast it may go.
"""

from __future__ import annotations

import socket
from contextlib import suppress

_RELAYED_BYTES = 256 * 1024
_ANSWERED_BYTES = 2 << 20
_FAMILIES = (socket.AF_INET, socket.AF_INET6)

# Part of every Linux kernel and allowed to every user. The option is None where there is none.
_UNPACED = b"reno"
_PACED_BEGIN = b"bbr"  # as all its versions are called
_CONGESTION_CONTROL: int | None = getattr(socket, "TCP_CONGESTION", None)
_NAME_BYTES = 16


def accept_unpaced(listener: socket.socket) -> None:
    """What connections accepted here send goes out at once, whatever the system does elsewhere.

    Some congestion controls (BBR) let packets go by a timer, so as not to fill the queues of a
    network. Within a host that costs more processor time than all the rest of sending. A connection
    that has begun so keeps its timer, so it must not begin so; those that come from elsewhere are
    for `pace_by_distance`.
    """
    with suppress(OSError):
        if _control_of(listener).startswith(_PACED_BEGIN):
            _set_control(listener, _UNPACED)


def pace_by_distance(connected: socket.socket) -> None:
    """Between hosts the system's own congestion control holds, within one none that paces."""
    with suppress(OSError):  # it has left already
        control = _control_of(connected)
        if _is_here(connected):
            if control.startswith(_PACED_BEGIN):
                _set_control(connected, _UNPACED)
        elif control == _UNPACED:
            with socket.socket() as usual:
                _set_control(connected, _control_of(usual))


def keep_little_under_way(client: socket.socket) -> None:
    """For what is passed on as it comes: there is no distance to fill within one host.

    And what waits leaves the processor's caches.
    """
    _send_from(client, _RELAYED_BYTES)


def take_answers_whole(client: socket.socket) -> None:
    """For what is there at once: an answer of usual size is written without a wait."""
    _send_from(client, _ANSWERED_BYTES)


def _send_from(client: socket.socket, buffer_bytes: int) -> None:
    if _is_here(client):
        with suppress(OSError):  # it has left already
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)


def _control_of(connected: socket.socket) -> bytes:
    """Its congestion control; nothing where there is none, or none can be chosen."""
    if _CONGESTION_CONTROL is None or connected.family not in _FAMILIES:
        return b""
    name = connected.getsockopt(socket.IPPROTO_TCP, _CONGESTION_CONTROL, _NAME_BYTES)
    return name.rstrip(b"\0")


def _set_control(of: socket.socket, name: bytes) -> None:
    if _CONGESTION_CONTROL is not None:
        of.setsockopt(socket.IPPROTO_TCP, _CONGESTION_CONTROL, name)


def _is_here(connected: socket.socket) -> bool:
    """Whether the other end is on this host; not known of one that has left."""
    if connected.family not in _FAMILIES:
        return False
    with suppress(OSError):
        return bool(connected.getpeername()[0] == connected.getsockname()[0])
    return False
