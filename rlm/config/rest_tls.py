"""The settings of TLS at the managers' HTTP API; rlm.tls.http_tls reads the files."""

from __future__ import annotations

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from rsm.config.section import Section
from rsm.config.values import File

REST_KEYSTORE_KEY = "rest.ssl.keystore.location"
REST_KEY_PASSWORD_KEY = "rest.ssl.key.password"  # noqa: S105 - the name of a setting
REST_TRUSTSTORE_KEY = "rest.ssl.truststore.location"


class RestTlsConfig(Section):
    """TLS between commands and managers."""

    keystore: File | None = Field(
        default=None,
        validation_alias=REST_KEYSTORE_KEY,
        description="PEM file with a private key and its certificate chain. With it, the "
        "manager's HTTP API uses HTTPS only. The certificate must name the registered address.",
    )
    key_password: SecretStr | None = Field(
        default=None,
        validation_alias=REST_KEY_PASSWORD_KEY,
        description="Password of that private key, if it is encrypted.",
    )
    truststore: File | None = Field(
        default=None,
        validation_alias=REST_TRUSTSTORE_KEY,
        description="PEM file with the certificates that sign managers' certificates, for "
        "commands. Without it, those that the system trusts.",
    )

    @property
    def is_on(self) -> bool:
        """Whether the manager's API uses HTTPS."""
        return self.keystore is not None

    @property
    def revealed_key_password(self) -> str | None:
        """The password in clear; only for opening the key."""
        return None if self.key_password is None else self.key_password.get_secret_value()

    @field_validator("key_password")
    @classmethod
    def _check_key_password(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if value is not None and info.data.get("keystore") is None:
            raise ValueError(f"{REST_KEYSTORE_KEY} as well")
        return value
