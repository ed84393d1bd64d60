"""Settings that are passed unchanged to the Kafka client (librdkafka).

`rlm` rejects the settings that it sets itself; other values of some would make copies unsafe. Only
`librdkafka()` reveals values whose keys suggest a secret.
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
"""Common keys of the Kafka client, to suggest one of them for a misspelled key."""


def is_owned(name: str) -> bool:
    """Return whether `rlm` sets this librdkafka key itself, so that users may not."""
    return name in _OWNED


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """Keys and values for librdkafka, without the prefix of the configuration file."""

    plain: Mapping[str, str] = field(default_factory=dict)
    secret: Mapping[str, SecretStr] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, str]) -> ClientProperties:
        """Separate `values` into plain ones and secrets."""
        return cls(
            plain={name: value for name, value in values.items() if not is_secret(name)},
            secret={name: SecretStr(value) for name, value in values.items() if is_secret(name)},
        )

    def librdkafka(self) -> dict[str, str]:
        """Return all settings with secrets in clear; only for the client's constructor."""
        revealed = {name: value.get_secret_value() for name, value in self.secret.items()}
        return {**self.plain, **revealed}
