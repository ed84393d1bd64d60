"""Settings that are passed to the Kafka client (librdkafka) as they stand.

Refuses those that the product decides itself, because a copy would not be safe with others. What
looks like a secret is printed by nothing here; `librdkafka()` is the one way out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

PREFIX = "client."

_SECRET = re.compile(
    r"password|passphrase|secret|private|token|key\.pem|oauthbearer\.config|connection\.string"
)
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
    "debug",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.oauthbearer.config",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
    "socket.timeout.ms",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.key.pem",
)
"""Keys of the Kafka client that configurations name most: what a misspelled key may have meant."""


def is_owned(name: str) -> bool:
    """Whether the product sets this librdkafka key itself, so that nobody else may."""
    return name in _OWNED


def is_secret(name: str) -> bool:
    """Whether the value of this key must not be shown."""
    return _SECRET.search(name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """Keys and values for librdkafka, without the prefix they have in the file."""

    plain: Mapping[str, str] = field(default_factory=dict)
    secret: Mapping[str, SecretStr] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Mapping[str, str]) -> ClientProperties:
        """Split `values` into what may be shown and what may not."""
        return cls(
            plain={name: value for name, value in values.items() if not is_secret(name)},
            secret={name: SecretStr(value) for name, value in values.items() if is_secret(name)},
        )

    def librdkafka(self) -> dict[str, str]:
        """All of them, secrets in clear: for the client's constructor and nothing else."""
        revealed = {name: value.get_secret_value() for name, value in self.secret.items()}
        return {**self.plain, **revealed}
