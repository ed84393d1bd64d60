"""Loads keys and certificates from PEM files into TLS contexts, as Kafka does for type PEM.

Errors name the setting and the file, never the content.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from rsm.segment.errors import InvalidConfigError

_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
_PRIVATE_KEY = re.compile(r"-----BEGIN ([A-Z]+ )?PRIVATE KEY-----")
_ENCRYPTED = re.compile(
    r"-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keystore:
    """Represents a file with a private key and its certificate chain.

    `location_key` and `password_key` name the settings that configure it.
    """

    path: Path
    password: str | None = field(repr=False)
    location_key: str
    password_key: str

    def load_into(self, context: ssl.SSLContext) -> None:
        """Load the key and certificates into `context`. Raises InvalidConfigError; may block."""
        text = _pem(self.path, self.location_key)
        if _PRIVATE_KEY.search(text) is None:
            raise self._unusable(
                "cannot load the private key: the file contains none in PEM format"
            )
        is_encrypted = _ENCRYPTED.search(text) is not None
        if is_encrypted and self.password is None:
            raise InvalidConfigError(
                "cannot load the private key: it is encrypted, and no password is set",
                key=self.password_key,
                file=self.path,
                advice="Set the password, or give an unencrypted key",
            )
        try:
            # Pass a password in any case: OpenSSL would otherwise prompt on the terminal.
            context.load_cert_chain(self.path, password=self.password or "")
        except (OSError, ValueError) as error:  # ValueError: a password above 1,023 bytes
            if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
                raise self._unusable(
                    "cannot use the private key: it does not match the certificate"
                ) from error
            if is_encrypted:
                raise InvalidConfigError(
                    "cannot open the private key with the password",
                    key=self.password_key,
                    file=self.path,
                    advice="Correct the password, or give another key",
                ) from error
            raise self._unusable("cannot use the private key or its certificate", error) from error

    def _unusable(self, message: str, reason: Exception | None = None) -> InvalidConfigError:
        cause = {} if reason is None else {"reason": reason}
        return InvalidConfigError(
            message,
            key=self.location_key,
            file=self.path,
            **cause,
            advice="Give a PEM file with a private key and its certificate",
        )


def trust(context: ssl.SSLContext, path: Path, *, location_key: str) -> None:
    """Let `context` trust the file's CA certificates. Raises InvalidConfigError; may block."""
    _pem(path, location_key)
    try:
        context.load_verify_locations(cafile=path)
    except OSError as error:
        raise InvalidConfigError(
            "cannot use the certificates",
            key=location_key,
            file=path,
            reason=error,
            advice="Give a PEM file with valid certificates",
        ) from error


def _pem(path: Path, location_key: str) -> str:
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise InvalidConfigError(
            "cannot read the file",
            key=location_key,
            file=path,
            reason=error.strerror,
            advice="Check its path and permissions",
        ) from error
    if _CERTIFICATE not in text:
        raise InvalidConfigError(
            "cannot use the file: it contains no certificate in PEM format",
            key=location_key,
            file=path,
            advice="Give a PEM file with certificates",
        )
    return text
