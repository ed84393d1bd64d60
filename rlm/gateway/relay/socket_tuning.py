"""Tunes the sockets of connections within this host.

For connections between hosts, the kernel chooses buffer sizes and the pace of sending.
"""

from __future__ import annotations

import socket
from contextlib import suppress

_RELAYED_BYTES = 256 * 1024
_RESPONSE_BYTES = 2 << 20
_FAMILIES = (socket.AF_INET, socket.AF_INET6)

# Every Linux kernel has Reno, and by default every user may set it.
_UNPACED = b"reno"
_PACED_BEGIN = b"bbr"  # The names of all BBR versions begin like this.
_CONGESTION_CONTROL: int | None = getattr(socket, "TCP_CONGESTION", None)  # Linux only
_NAME_BYTES = 16


def accept_unpaced(listener: socket.socket) -> None:
    """Make accepted connections send without pacing if the system's default is BBR.

    BBR paces packets by a timer, so that they do not fill network queues. Within a host, the timer
    costs more processor time than all other work of sending. A connection that starts with BBR
    keeps the timer, so the listener must not use BBR. For clients on other hosts,
    `pace_by_distance` restores the default.
    """
    with suppress(OSError):
        if _control_of(listener).startswith(_PACED_BEGIN):
            _set_control(listener, _UNPACED)


def pace_by_distance(connected: socket.socket) -> None:
    """Use the system's congestion control between hosts, but do not pace within a host."""
    with suppress(OSError):  # The peer may have disconnected already.
        control = _control_of(connected)
        if _is_here(connected):
            if control.startswith(_PACED_BEGIN):
                _set_control(connected, _UNPACED)
        elif control == _UNPACED:
            with socket.socket() as usual:
                _set_control(connected, _control_of(usual))


def limit_send_buffer(client: socket.socket) -> None:
    """Set a small send buffer for a client on this host, for relayed bytes.

    Without network latency, a large buffer gains nothing, and its data leaves the processor's
    caches.
    """
    _send_from(client, _RELAYED_BYTES)


def enlarge_send_buffer(client: socket.socket) -> None:
    """Set a large send buffer for a client on this host, so that one write takes most responses."""
    _send_from(client, _RESPONSE_BYTES)


def _send_from(client: socket.socket, buffer_bytes: int) -> None:
    if _is_here(client):
        with suppress(OSError):  # The peer may have disconnected already.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)


def _control_of(connected: socket.socket) -> bytes:
    """Return the name of the socket's congestion control; empty if it cannot be set."""
    if _CONGESTION_CONTROL is None or connected.family not in _FAMILIES:
        return b""
    name = connected.getsockopt(socket.IPPROTO_TCP, _CONGESTION_CONTROL, _NAME_BYTES)
    return name.rstrip(b"\0")


def _set_control(of: socket.socket, name: bytes) -> None:
    if _CONGESTION_CONTROL is not None:
        of.setsockopt(socket.IPPROTO_TCP, _CONGESTION_CONTROL, name)


def _is_here(connected: socket.socket) -> bool:
    """Return whether the peer is on this host; False if it has disconnected."""
    if connected.family not in _FAMILIES:
        return False
    with suppress(OSError):
        return bool(connected.getpeername()[0] == connected.getsockname()[0])
    return False
