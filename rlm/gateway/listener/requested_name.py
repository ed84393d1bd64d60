"""The server name that a client asked for in its TLS handshake, kept until it is connected."""

from __future__ import annotations

import asyncio
import ssl


class _NamedSslObject(ssl.SSLObject):
    requested_name: str | None = None


def keep_requested_names(context: ssl.SSLContext) -> None:
    """Have `requested_name` know the names of handshakes under this context."""
    context.sslobject_class = _NamedSslObject
    context.sni_callback = _keep


def requested_name(transport: asyncio.BaseTransport) -> str | None:
    """The name, None if there is none or the connection is of plain text."""
    ssl_object = transport.get_extra_info("ssl_object")
    return ssl_object.requested_name if isinstance(ssl_object, _NamedSslObject) else None


def _keep(
    ssl_object: ssl.SSLSocket | ssl.SSLObject, name: str | None, _context: ssl.SSLContext
) -> None:
    if isinstance(ssl_object, _NamedSslObject):
        ssl_object.requested_name = name
