"""Creates the TLS context for connections to brokers. Reads files, but opens no socket."""

from __future__ import annotations

import ssl
from pathlib import Path

from rlm.wire.security.settings import TlsSettings
from rsm.segment.errors import InvalidConfigError


def client_context(tls: TlsSettings) -> ssl.SSLContext:
    """Create a TLS context, which always verifies the brokers' certificates.

    Raises InvalidConfigError, with librdkafka's key, if a certificate, key or CA file is unusable.
    """
    context = _trusting(tls.ca_path)
    context.check_hostname = tls.should_check_host_name
    if tls.certificate_path is not None:
        try:
            # If the key's password is missing, loading must fail, not prompt on the terminal.
            context.load_cert_chain(
                tls.certificate_path, tls.key_path, password=tls.key_password or ""
            )
        except OSError as error:
            raise InvalidConfigError(
                "cannot load the client's certificate and key",
                key="ssl.certificate.location or ssl.key.location",
                reason=error,
                advice="Set the keys to PEM files of a certificate and its private key",
            ) from error
    return context


def _trusting(ca_path: str | None) -> ssl.SSLContext:
    try:
        if ca_path is None:
            return ssl.create_default_context()
        if Path(ca_path).is_dir():  # Like librdkafka, this accepts a directory.
            return ssl.create_default_context(capath=ca_path)
        return ssl.create_default_context(cafile=ca_path)
    except OSError as error:
        raise InvalidConfigError(
            "cannot load the CA certificates",
            key="ssl.ca.location",
            found=ca_path,
            reason=error,
            advice="Set the key to a PEM file or a directory of CA certificates that rlm can read",
        ) from error
