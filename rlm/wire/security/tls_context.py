"""TLS towards brokers, from settings to what Python's ssl takes. Reads files, holds no socket."""

from __future__ import annotations

import ssl
from pathlib import Path

from rlm.wire.security.settings import TlsSettings
from rsm.segment.errors import InvalidConfigError


def client_context(tls: TlsSettings) -> ssl.SSLContext:
    """The context of connections to brokers: their certificates are always verified.

    Raises InvalidConfigError where a certificate, key or CA file cannot be used; its keys are
    librdkafka's.
    """
    context = _trusting(tls.ca_path)
    context.check_hostname = tls.check_host_name
    if tls.certificate_path is not None:
        try:
            # A key without its password must fail, not ask the terminal for it.
            context.load_cert_chain(
                tls.certificate_path, tls.key_path, password=tls.key_password or ""
            )
        except OSError as error:
            raise InvalidConfigError(
                "no usable client certificate",
                key="ssl.certificate.location or ssl.key.location",
                reason=error,
            ) from error
    return context


def _trusting(ca_path: str | None) -> ssl.SSLContext:
    try:
        if ca_path is None:
            return ssl.create_default_context()
        if Path(ca_path).is_dir():  # either, as librdkafka takes it
            return ssl.create_default_context(capath=ca_path)
        return ssl.create_default_context(cafile=ca_path)
    except OSError as error:
        raise InvalidConfigError(
            "no usable CA certificates", key="ssl.ca.location", found=ca_path, reason=error
        ) from error
