"""Defines the TLS settings of the gateway and of the managers' HTTP API.

Names and values follow Kafka's; the only store type is PEM. rlm.gateway.listener.tls and
rlm.tls.http_tls read and check the files.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from rlm.config.values import ServerNameTemplate, TlsVersions
from rsm.config.section import Section
from rsm.config.values import File

PROTOCOL_KEY = "gateway.listener.security.protocol"
KEYSTORE_KEY = "gateway.ssl.keystore.location"
KEY_PASSWORD_KEY = "gateway.ssl.key.password"  # noqa: S105 - the name of a setting
TRUSTSTORE_KEY = "gateway.ssl.truststore.location"
CLIENT_AUTH_KEY = "gateway.ssl.client.auth"
NAME_TEMPLATE_KEY = "gateway.advertised.name.template"
UPSTREAM_KEYSTORE_KEY = "gateway.upstream.ssl.keystore.location"
UPSTREAM_KEY_PASSWORD_KEY = "gateway.upstream.ssl.key.password"  # noqa: S105 - as above
REST_KEYSTORE_KEY = "rest.ssl.keystore.location"
REST_KEY_PASSWORD_KEY = "rest.ssl.key.password"  # noqa: S105 - the name of a setting
REST_TRUSTSTORE_KEY = "rest.ssl.truststore.location"


class ListenerProtocol(Enum):
    """Represents the protocol between clients and a gateway. SASL is between client and broker."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"


class ClientAuth(Enum):
    """Represents whether clients must present certificates, as Kafka's `ssl.client.auth` does."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


class GatewayTlsConfig(Section):
    """TLS at the gateway."""

    keystore_type: Literal["PEM"] = Field(
        default="PEM",
        validation_alias="gateway.ssl.keystore.type",
        description="Format of the gateway's key store.",
    )
    keystore: File | None = Field(
        default=None,
        validation_alias=KEYSTORE_KEY,
        description="PEM file with the gateway's private key and its certificate chain.",
    )
    key_password: SecretStr | None = Field(
        default=None,
        validation_alias=KEY_PASSWORD_KEY,
        description=f"Password of the private key in `{KEYSTORE_KEY}`, if it is encrypted.",
    )
    truststore_type: Literal["PEM"] = Field(
        default="PEM",
        validation_alias="gateway.ssl.truststore.type",
        description="Format of the trust store.",
    )
    truststore: File | None = Field(
        default=None,
        validation_alias=TRUSTSTORE_KEY,
        description="PEM file with the CA certificates that sign clients' certificates.",
    )
    client_auth: ClientAuth = Field(
        default=ClientAuth.NONE,
        validation_alias=CLIENT_AUTH_KEY,
        description="Whether clients must present certificates, as in Kafka's `ssl.client.auth`. "
        "Only the gateway checks them: the broker does not see them.",
    )
    enabled_protocols: TlsVersions = Field(
        default=("TLSv1.2", "TLSv1.3"),
        validation_alias="gateway.ssl.enabled.protocols",
        description="TLS versions that clients may use, comma-separated: `TLSv1.2`, `TLSv1.3`.",
    )
    protocol: ListenerProtocol = Field(
        default=ListenerProtocol.PLAINTEXT,
        validate_default=True,
        validation_alias=PROTOCOL_KEY,
        description="Protocol between clients and the gateway. The broker's listener decides "
        "whether clients must also authenticate by SASL.",
    )
    name_template: ServerNameTemplate | None = Field(
        default=None,
        validation_alias=NAME_TEMPLATE_KEY,
        description="Host name that clients receive for each broker, with `{node}` in place of its "
        "node id, such as `broker-{node}.kafka.example.com`. Needs TLS, and only applies if "
        "`log.dirs` is not set. All names lead to `gateway.listener`; no further ports are needed.",
    )
    upstream_keystore: File | None = Field(
        default=None,
        validation_alias=UPSTREAM_KEYSTORE_KEY,
        description="**Shared identity:** on a listener without SASL, the broker sees every client "
        "as the principal of this certificate. PEM file with the private key and certificate chain "
        "that the gateway presents to the broker for clients' connections. For these, the gateway "
        "never presents the certificate of `client.*`.",
    )
    upstream_key_password: SecretStr | None = Field(
        default=None,
        validation_alias=UPSTREAM_KEY_PASSWORD_KEY,
        description=f"Password of the private key in `{UPSTREAM_KEYSTORE_KEY}`, if it is "
        "encrypted.",
    )

    @property
    def is_on(self) -> bool:
        """Return whether clients use TLS."""
        return self.protocol is ListenerProtocol.SSL

    @property
    def revealed_key_password(self) -> str | None:
        """Return the password in clear. Use it only to open the key."""
        return _revealed(self.key_password)

    @property
    def revealed_upstream_key_password(self) -> str | None:
        """Return the password in clear. Use it only to open the key."""
        return _revealed(self.upstream_key_password)

    @field_validator("client_auth")
    @classmethod
    def _check_client_auth(cls, value: ClientAuth, info: ValidationInfo) -> ClientAuth:
        if value is not ClientAuth.NONE and info.data.get("truststore") is None:
            raise ValueError(f"none, or a value for {TRUSTSTORE_KEY}")
        return value

    @field_validator("protocol")
    @classmethod
    def _check_protocol(cls, value: ListenerProtocol, info: ValidationInfo) -> ListenerProtocol:
        """Reject SSL without a key store, and plain text with settings of TLS."""
        has_keystore = info.data.get("keystore") is not None
        if value is ListenerProtocol.SSL and not has_keystore:
            raise ValueError(f"PLAINTEXT, or a value for {KEYSTORE_KEY}")
        if value is ListenerProtocol.PLAINTEXT and (has_keystore or info.data.get("truststore")):
            raise ValueError("SSL, because keys of gateway.ssl.* are set")
        return value

    @field_validator("name_template")
    @classmethod
    def _check_name_template(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("protocol") is not ListenerProtocol.SSL:
            raise ValueError(
                f"no value unless {PROTOCOL_KEY}=SSL: clients send host names only in TLS"
            )
        return value


def _revealed(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


class RestTlsConfig(Section):
    """TLS between commands and managers."""

    keystore: File | None = Field(
        default=None,
        validation_alias=REST_KEYSTORE_KEY,
        description="PEM file with a private key and its certificate chain. If this key is set, "
        "the manager's HTTP API uses HTTPS only. The certificate must name the registered address.",
    )
    key_password: SecretStr | None = Field(
        default=None,
        validation_alias=REST_KEY_PASSWORD_KEY,
        description=f"Password of the private key in `{REST_KEYSTORE_KEY}`, if it is encrypted.",
    )
    truststore: File | None = Field(
        default=None,
        validation_alias=REST_TRUSTSTORE_KEY,
        description="PEM file with the CA certificates that sign managers' certificates; only "
        "commands read it. Without this key, commands use the system's CA certificates.",
    )

    @property
    def is_on(self) -> bool:
        """Return whether the manager's API uses HTTPS."""
        return self.keystore is not None

    @property
    def revealed_key_password(self) -> str | None:
        """Return the password in clear. Use it only to open the key."""
        return None if self.key_password is None else self.key_password.get_secret_value()

    @field_validator("key_password")
    @classmethod
    def _check_key_password(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is not None and info.data.get("keystore") is None:
            raise ValueError(f"no value unless {REST_KEYSTORE_KEY} is set")
        return value
