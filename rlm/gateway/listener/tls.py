"""Creates the TLS contexts of a gateway, downstream and upstream, from its settings.

A downstream context records the server name (SNI) of each handshake for later use.

**Shared identity:** if clients' upstream connections used the certificate of `rlm` itself, every
client would have the administrator rights of `rlm` at a broker that derives principals from
certificates. Those connections therefore never use that certificate.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rlm.config.tls import (
    CLIENT_AUTH_KEY,
    KEY_PASSWORD_KEY,
    KEYSTORE_KEY,
    TRUSTSTORE_KEY,
    UPSTREAM_KEY_PASSWORD_KEY,
    UPSTREAM_KEYSTORE_KEY,
    ClientAuth,
    GatewayTlsConfig,
)
from rlm.tls.keystore import Keystore, trust
from rlm.tls.reloading_context import ReloadingContext
from rlm.wire.security.settings import SecuritySettings, TlsSettings
from rlm.wire.security.tls_context import client_context
from rsm.segment.clock import Clock
from rsm.segment.errors import InvalidConfigError

_VERSIONS = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_AUTH_MODES = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}

Renewed = Callable[[bool], None]


def tls_towards_clients(
    config: GatewayTlsConfig, clock: Clock, renewed: Renewed
) -> ReloadingContext | None:
    """Return the downstream context; None for plain text.

    Raises InvalidConfigError that names the key and, if a file is the cause, the file.
    """
    if not config.is_on or config.keystore is None:
        return None
    files = [path for path in (config.keystore, config.truststore) if path is not None]
    return ReloadingContext(lambda: _server_context(config), files, clock, renewed=renewed)


def tls_towards_brokers(
    config: GatewayTlsConfig, own: SecuritySettings, clock: Clock, renewed: Renewed
) -> ReloadingContext | None:
    """Return the upstream context, for the broker listener that `own` connects to.

    Returns None if that listener uses plain text. Raises InvalidConfigError that names the key and,
    if a file is the cause, the file.
    """
    if own.tls is None:
        if config.upstream_keystore is not None:
            raise InvalidConfigError(
                "cannot use the upstream keystore: the connections to brokers do not use TLS",
                key=UPSTREAM_KEYSTORE_KEY,
                advice="Set client.security.protocol to ssl or sasl_ssl, or remove the key",
            )
        return None
    trusted = replace(own.tls, certificate_path=None, key_path=None, key_password=None)
    files = [*_files(trusted), *([config.upstream_keystore] if config.upstream_keystore else [])]
    return ReloadingContext(
        lambda: _upstream_context(config, trusted), files, clock, renewed=renewed
    )


def security_warnings(config: GatewayTlsConfig, own: SecuritySettings) -> tuple[str, ...]:
    """Return warnings about settings that are valid, but have security consequences."""
    warnings = []
    if config.upstream_keystore is not None and own.sasl is None:
        is_required = config.client_auth is ClientAuth.REQUIRED
        clients = "every client" if is_required else "every client, even without a certificate,"
        warnings.append(f"{clients} has the rights of the certificate in {UPSTREAM_KEYSTORE_KEY}")
    if config.client_auth is not ClientAuth.NONE and own.sasl is None:
        warnings.append(
            f"the broker does not see the clients' certificates that {CLIENT_AUTH_KEY} requests:"
            " the broker's ACLs treat all clients as one principal"
        )
    if own.tls is not None and own.tls.certificate_path and config.upstream_keystore is None:
        warnings.append(
            "clients' connections present no certificate to the broker, so they fail if its"
            f" listener requires one. Set {UPSTREAM_KEYSTORE_KEY} for such a listener"
        )
    return tuple(warnings)


def _server_context(config: GatewayTlsConfig) -> ssl.SSLContext:
    assert config.keystore is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context, config.enabled_protocols)
    keystore = Keystore(
        path=config.keystore,
        password=config.revealed_key_password,
        location_key=KEYSTORE_KEY,
        password_key=KEY_PASSWORD_KEY,
    )
    keystore.load_into(context)
    if config.truststore is not None:
        trust(context, config.truststore, location_key=TRUSTSTORE_KEY)
    context.verify_mode = _AUTH_MODES[config.client_auth]
    _keep_requested_names(context)
    return context


def _upstream_context(config: GatewayTlsConfig, trusted: TlsSettings) -> ssl.SSLContext:
    context = client_context(trusted)
    _restrict(context, tuple(_VERSIONS))
    if config.upstream_keystore is not None:
        keystore = Keystore(
            path=config.upstream_keystore,
            password=config.revealed_upstream_key_password,
            location_key=UPSTREAM_KEYSTORE_KEY,
            password_key=UPSTREAM_KEY_PASSWORD_KEY,
        )
        keystore.load_into(context)
    return context


def _restrict(context: ssl.SSLContext, protocols: Sequence[str]) -> None:
    versions = sorted(_VERSIONS[name] for name in protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    # A renegotiation could delay a write, but the gateway reuses the written buffer at once.
    context.options |= ssl.OP_NO_RENEGOTIATION


def _files(tls: TlsSettings) -> list[Path]:
    return [] if tls.ca_path is None else [Path(tls.ca_path)]


class _NamedSslObject(ssl.SSLObject):
    requested_name: str | None = None


def _keep_requested_names(context: ssl.SSLContext) -> None:
    """Make the context record each handshake's server name, for `requested_name`."""
    context.sslobject_class = _NamedSslObject
    context.sni_callback = _keep_name


def requested_name(transport: asyncio.BaseTransport) -> str | None:
    """Return the server name that the client sent; None if it sent none or uses plain text."""
    ssl_object = transport.get_extra_info("ssl_object")
    return ssl_object.requested_name if isinstance(ssl_object, _NamedSslObject) else None


def _keep_name(
    ssl_object: ssl.SSLSocket | ssl.SSLObject, name: str | None, _context: ssl.SSLContext
) -> None:
    if isinstance(ssl_object, _NamedSslObject):
        ssl_object.requested_name = name
