"""The secret of a cluster: its managers and commands sign HTTP requests and answers with it.

Who may read the metadata topic may sign, and nobody else. The secret is never sent. Neither its
representation nor any command shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

SECRET_BYTES = 32
PREVIOUS_VALID_MS = 10 * 60_000
"""How long the secret before stays valid, by the brokers' clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningSecret:
    """One secret; `secret_id` is public and names it in signed requests."""

    secret_id: UUID
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) != SECRET_BYTES:
            raise ValueError(f"a secret of {len(self.key)} bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecretSet:
    """The cluster's secret from here on; the last one written holds.

    Written by anyone, unfenced. It carries the secret that it replaces, so that it is complete
    after compaction. `previous` None: it is the first one, or the one before is not trusted.
    """

    event_id: UUID
    current: SigningSecret
    previous: SigningSecret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecret:
    """What is known of the secret; `set_ms` is the brokers' time of its record."""

    current: SigningSecret
    previous: SigningSecret | None
    set_ms: int

    def valid(self, secret_id: UUID, broker_time_ms: int) -> SigningSecret | None:
        """The secret of this id if it is valid at that time of the brokers, else None."""
        if secret_id == self.current.secret_id:
            return self.current
        previous = self.previous
        if previous is None or secret_id != previous.secret_id:
            return None
        return previous if broker_time_ms < self.set_ms + PREVIOUS_VALID_MS else None
