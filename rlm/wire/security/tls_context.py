"""Creates Python's TLS context towards brokers from settings. Reads files, opens no socket."""

from __future__ import annotations

import ssl
from pathlib import Path

from rlm.wire.security.settings import TlsSettings
from rsm.segment.errors import InvalidConfigError


def client_context(tls: TlsSettings) -> ssl.SSLContext:
    """Create the context of connections to brokers; it always verifies their certificates.

    Raises InvalidConfigError if a certificate, key or CA file is unusable; the error names
    librdkafka's keys.
    """
    context = _trusting(tls.ca_path)
    context.check_hostname = tls.should_check_host_name
    if tls.certificate_path is not None:
        try:
            # A key without its password must fail, and not prompt on the terminal.
            context.load_cert_chain(
                tls.certificate_path, tls.key_path, password=tls.key_password or ""
            )
        except OSError as error:
            raise InvalidConfigError(
                "the client certificate cannot be used",
                key="ssl.certificate.location or ssl.key.location",
                reason=error,
                advice="Give the PEM files of a certificate and of its own key",
            ) from error
    return context


def _trusting(ca_path: str | None) -> ssl.SSLContext:
    try:
        if ca_path is None:
            return ssl.create_default_context()
        if Path(ca_path).is_dir():  # file or directory, as in librdkafka
            return ssl.create_default_context(capath=ca_path)
        return ssl.create_default_context(cafile=ca_path)
    except OSError as error:
        raise InvalidConfigError(
            "the CA certificates cannot be used",
            key="ssl.ca.location",
            found=ca_path,
            reason=error,
            advice="Give a PEM file of CA certificates that this user can read",
        ) from error
