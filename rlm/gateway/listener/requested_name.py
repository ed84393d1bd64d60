"""Records the server name (SNI) of a client's TLS handshake for use after the handshake."""

from __future__ import annotations

import asyncio
import ssl


class _NamedSslObject(ssl.SSLObject):
    requested_name: str | None = None


def keep_requested_names(context: ssl.SSLContext) -> None:
    """Record the names of all handshakes under this context, for `requested_name`."""
    context.sslobject_class = _NamedSslObject
    context.sni_callback = _keep


def requested_name(transport: asyncio.BaseTransport) -> str | None:
    """Return the client's server name; None if it sent none or uses plain text."""
    ssl_object = transport.get_extra_info("ssl_object")
    return ssl_object.requested_name if isinstance(ssl_object, _NamedSslObject) else None


def _keep(
    ssl_object: ssl.SSLSocket | ssl.SSLObject, name: str | None, _context: ssl.SSLContext
) -> None:
    if isinstance(ssl_object, _NamedSslObject):
        ssl_object.requested_name = name
