"""Connects to a broker for a client, in plain text or with TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from rlm.config.values import HostPort
from rlm.gateway.listener.tls_acceptor import SHUTDOWN_S


async def connect(
    protocol: Callable[[], asyncio.BaseProtocol],
    upstream: HostPort,
    tls: Callable[[], ssl.SSLContext] | None,
) -> None:
    """Connect `protocol` to a broker. Has no timeout; the caller sets one.

    If the context checks host names, the broker's certificate must name `upstream.host`. Raises
    OSError, also for TLS errors.
    """
    loop = asyncio.get_running_loop()
    if tls is None:
        await loop.create_connection(protocol, upstream.host, upstream.port)
        return
    await loop.create_connection(
        protocol,
        upstream.host,
        upstream.port,
        ssl=tls(),
        server_hostname=upstream.host,
        ssl_shutdown_timeout=SHUTDOWN_S,
    )
