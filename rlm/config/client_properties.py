"""Represents the settings that `rlm` passes unchanged to the Kafka client (librdkafka).

`rlm` rejects the settings that it sets itself, because other values of some of them would make
copies unsafe. Only `librdkafka()` reveals values whose keys suggest a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from rsm.secret_keys import is_secret

PREFIX = "client."

_OWNED = frozenset(
    {
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "enable.partition.eof",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "isolation.level",
        "metadata.broker.list",
        "request.required.acks",
        "transactional.id",
    }
)

COMMON_KEYS = (
    "client.id",
    "client.rack",
    "connections.max.idle.ms",
    "debug",
    "enable.ssl.certificate.verification",
    "fetch.max.bytes",
    "linger.ms",
    "max.partition.fetch.bytes",
    "message.max.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
    "socket.keepalive.enable",
    "socket.timeout.ms",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
)
"""Common keys of the Kafka client, which `rlm` suggests for misspelled ones."""


def is_owned(name: str) -> bool:
    """Return whether `rlm` sets this librdkafka key itself, and so rejects it in the file."""
    return name in _OWNED


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """Represents librdkafka's settings, by keys without the prefix of the configuration file."""

    plain: Mapping[str, str] = field(default_factory=dict)
    secret: Mapping[str, SecretStr] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, str]) -> ClientProperties:
        """Build the settings from `values`; keys that suggest a secret become secrets."""
        return cls(
            plain={name: value for name, value in values.items() if not is_secret(name)},
            secret={name: SecretStr(value) for name, value in values.items() if is_secret(name)},
        )

    def librdkafka(self) -> dict[str, str]:
        """Return all settings with secrets in clear. Do not log or print the result."""
        revealed = {name: value.get_secret_value() for name, value in self.secret.items()}
        return {**self.plain, **revealed}
