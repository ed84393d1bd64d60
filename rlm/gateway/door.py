"""A door: where clients come in, and which brokers they may be led on to."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm.config.values import HostPort


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Door:
    """`listener` is bound; whoever opens the door closes it.

    `upstreams` gives the brokers' addresses as of now, the one to try first in front; none: there
    is no broker behind it. It is called on the server's loop and does not wait.
    """

    name: str
    listener: socket.socket
    upstreams: Callable[[], Sequence[HostPort]]
