"""Connects to a broker for a client, in plain text or by TLS."""

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
    """Return when `protocol` is connected.

    The broker's certificate is that of `upstream.host`, if the context checks host names. Raises
    OSError, of which what TLS refuses is one; bounded by nothing, so that whoever calls does.
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
