"""Creates the TLS contexts of the managers' HTTP API, for its server and for commands.

The server's certificate and the CAs that commands trust are PEM files, loaded like those of the
gateway (rlm.tls.keystore). New connections use a changed keystore without a restart.
"""

from __future__ import annotations

import ssl

from rlm.config.tls import (
    REST_KEY_PASSWORD_KEY,
    REST_KEYSTORE_KEY,
    REST_TRUSTSTORE_KEY,
    RestTlsConfig,
)
from rlm.tls.keystore import Keystore, trust
from rlm.tls.reloading_context import ReloadingContext
from rsm.segment.clock import Clock


def server_context(config: RestTlsConfig, clock: Clock) -> ssl.SSLContext | None:
    """Return the API's context; None for plain HTTP. Raises InvalidConfigError with key and file.

    Use the context for one server only: that server's thread checks the file for changes.
    """
    keystore = config.keystore
    if keystore is None:
        return None
    fresh = ReloadingContext(
        lambda: _with_certificate(config), (keystore,), clock, renewed=lambda _is_good: None
    )
    context = fresh.current()

    def take_current(
        connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        connection.context = fresh.current()

    context.sni_callback = take_current
    return context


def client_context(config: RestTlsConfig) -> ssl.SSLContext | None:
    """Return the context for commands; None if they use the system's trusted certificates.

    Raises InvalidConfigError with key and file.
    """
    if config.truststore is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    trust(context, config.truststore, location_key=REST_TRUSTSTORE_KEY)
    return context


def _with_certificate(config: RestTlsConfig) -> ssl.SSLContext:
    assert config.keystore is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    Keystore(
        path=config.keystore,
        password=config.revealed_key_password,
        location_key=REST_KEYSTORE_KEY,
        password_key=REST_KEY_PASSWORD_KEY,
    ).load_into(context)
    return context
