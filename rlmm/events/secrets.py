"""The secret that a cluster's managers and commands sign HTTP requests and responses with.

Read access to the metadata topic is the right to sign. The secret is never sent. Neither its
representation nor any command shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

SECRET_BYTES = 32
PREVIOUS_VALID_MS = 10 * 60_000
"""How long the previous secret stays valid, by the brokers' clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningSecret:
    """One secret; `secret_id` is public and identifies it in signed requests."""

    secret_id: UUID
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) != SECRET_BYTES:
            raise ValueError(f"a secret of {len(self.key)} bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecretSet:
    """The cluster's new secret; the last record wins.

    Any process may write it, unfenced. It contains the secret that it replaces, so that it is
    complete after compaction. `previous` None: it is the first, or its predecessor is untrusted.
    """

    event_id: UUID
    current: SigningSecret
    previous: SigningSecret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecret:
    """The cluster's secret; `set_ms` is the LogAppendTime of its record."""

    current: SigningSecret
    previous: SigningSecret | None
    set_ms: int

    def valid(self, secret_id: UUID, broker_time_ms: int) -> SigningSecret | None:
        """Return the secret with this id if it is valid at that broker time, else None."""
        if secret_id == self.current.secret_id:
            return self.current
        previous = self.previous
        if previous is None or secret_id != previous.secret_id:
            return None
        return previous if broker_time_ms < self.set_ms + PREVIOUS_VALID_MS else None
