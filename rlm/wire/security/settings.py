"""Reads the security settings of the Kafka client, which have librdkafka's names.

An unsupported security setting is an error, because a connection must not be less secure than
requested. Settings that do not concern security are ignored. Secrets never appear in repr.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlm.wire.security.sasl import SCRAM_HASHES
from rsm.segment.errors import InvalidConfigError

_PROTOCOL = "security.protocol"
_MECHANISM_KEYS = ("sasl.mechanisms", "sasl.mechanism")
_USERNAME = "sasl.username"
_PASSWORD = "sasl.password"  # noqa: S105 - the name of a setting
_CA = "ssl.ca.location"
_CERTIFICATE = "ssl.certificate.location"
_KEY = "ssl.key.location"
_KEY_PASSWORD = "ssl.key.password"  # noqa: S105 - the name of a setting
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"
_VERIFICATION = "enable.ssl.certificate.verification"

_PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_MECHANISMS = ("PLAIN", *SCRAM_HASHES)
_SECURITY_PREFIXES = ("security.", "ssl.", "sasl.", "enable.sasl", "enable.ssl")
_KNOWN = frozenset(
    {_PROTOCOL, *_MECHANISM_KEYS, _USERNAME, _PASSWORD, _CA, _CERTIFICATE, _KEY, _KEY_PASSWORD}
    | {_IDENTIFICATION, _VERIFICATION}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Represents the TLS settings for brokers, whose certificates are always verified.

    If `ca_path` is None, the client trusts the system's CA certificates.
    """

    ca_path: str | None = None
    certificate_path: str | None = None
    key_path: str | None = None
    key_password: str | None = field(default=None, repr=False)
    should_check_host_name: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """Represents a SASL mechanism and the user's credentials."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """Represents how a connection to a broker is secured; an unused field is None."""

    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None


def security_of(client: Mapping[str, str]) -> SecuritySettings:
    """Read the security settings in `client`; its keys are librdkafka's, without a prefix.

    Raises InvalidConfigError with the key in `client`, without the prefix that it may have in the
    user's file.
    """
    for key in client:
        if key.startswith(_SECURITY_PREFIXES) and key not in _KNOWN:
            raise InvalidConfigError(
                "cannot use a setting of the Kafka client: rlm does not support it",
                key=key,
                advice="Remove it",
            )
    protocol = client.get(_PROTOCOL, "plaintext").lower()
    if protocol not in _PROTOCOLS:
        raise _invalid(_PROTOCOL, protocol, _PROTOCOLS)
    return SecuritySettings(
        tls=_tls(client) if protocol.endswith("ssl") else None,
        sasl=_sasl(client) if protocol.startswith("sasl") else None,
    )


def _tls(client: Mapping[str, str]) -> TlsSettings:
    if client.get(_VERIFICATION, "true").lower() != "true":
        raise _invalid(_VERIFICATION, client[_VERIFICATION], ("true",))
    identification = client.get(_IDENTIFICATION, "https").lower()
    if identification not in ("https", "none"):
        raise _invalid(_IDENTIFICATION, identification, ("https", "none"))
    if _KEY in client and _CERTIFICATE not in client:
        raise InvalidConfigError(
            "cannot use the client's private key: its certificate is missing",
            key=_CERTIFICATE,
            advice="Set it to the path of the certificate",
        )
    return TlsSettings(
        ca_path=client.get(_CA),
        certificate_path=client.get(_CERTIFICATE),
        key_path=client.get(_KEY),
        key_password=client.get(_KEY_PASSWORD),
        should_check_host_name=identification == "https",
    )


def _sasl(client: Mapping[str, str]) -> SaslSettings:
    key = next((name for name in _MECHANISM_KEYS if name in client), _MECHANISM_KEYS[0])
    mechanism = client.get(key, "GSSAPI").upper()  # The check below rejects librdkafka's default.
    if mechanism not in _MECHANISMS:
        raise _invalid(key, mechanism, _MECHANISMS)
    for needed in (_USERNAME, _PASSWORD):
        if needed not in client:
            raise InvalidConfigError(
                "cannot log in: a setting of the SASL mechanism is missing",
                key=needed,
                mechanism=mechanism,
                advice="Set it",
            )
    return SaslSettings(mechanism=mechanism, username=client[_USERNAME], password=client[_PASSWORD])


def _invalid(key: str, found: str, expected: tuple[str, ...]) -> InvalidConfigError:
    return InvalidConfigError(
        "cannot use a setting of the Kafka client: its value is not supported",
        key=key,
        found=found,
        expected=" or ".join(expected),
    )
