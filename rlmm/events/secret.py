"""Defines the secret with which a cluster's managers and commands sign HTTP messages.

**Every process that can read the metadata topic can sign requests.** The secret is never sent over
HTTP. Neither its `repr` nor any command shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from rlmm.events.event import Event
from rlmm.events.family import ClusterFamily
from rlmm.events.rows import ClusterReader
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind
from rsm.segment.errors import CorruptError
from rsm.segment.metadata_codec import id_from_bytes

SECRET_BYTES = 32
PREVIOUS_VALID_MS = 10 * 60_000
"""How long the previous secret stays valid, by the brokers' clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningSecret:
    """Represents one secret; `secret_id` is public and identifies it in signed requests."""

    secret_id: UUID
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) != SECRET_BYTES:
            raise ValueError(f"a secret must have {SECRET_BYTES} bytes, not {len(self.key)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecretSet(Event):
    """Represents the cluster's new secret; the last record wins.

    Any process may write it, without fencing. It contains the secret that it replaces, so that it
    is complete after compaction. `previous` is None for the first secret, and for one whose
    predecessor is untrusted.
    """

    current: SigningSecret
    previous: SigningSecret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecret:
    """Represents the cluster's secret; `set_ms` is the LogAppendTime of its record."""

    current: SigningSecret
    previous: SigningSecret | None
    set_ms: int

    def valid(self, secret_id: UUID, broker_time_ms: int) -> SigningSecret | None:
        """Return the secret with this id; None if it is not valid at `broker_time_ms`."""
        if secret_id == self.current.secret_id:
            return self.current
        previous = self.previous
        if previous is None or secret_id != previous.secret_id:
            return None
        return previous if broker_time_ms < self.set_ms + PREVIOUS_VALID_MS else None


class ClusterSecretFamily(ClusterFamily[ClusterSecretSet, pb.ClusterSecretSet, ClusterSecret]):
    """Defines the family of the cluster's secret. No error shows the secret."""

    event_type = ClusterSecretSet
    kind = RecordKind.CLUSTER_SECRET
    field = "cluster_secret_set"
    row_prefix = b"secret"
    has_row_time = True

    def to_message(self, event: ClusterSecretSet) -> pb.ClusterSecretSet:
        return pb.ClusterSecretSet(
            current=_to_message(event.current),
            previous=None if event.previous is None else _to_message(event.previous),
        )

    def from_message(self, event_id: UUID, message: pb.ClusterSecretSet) -> ClusterSecretSet:
        return ClusterSecretSet(
            event_id=event_id,
            current=_from_message(message.current),
            previous=_from_message(message.previous) if message.HasField("previous") else None,
        )

    def record_key(self, event: ClusterSecretSet) -> RecordKey:
        return RecordKey(kind=self.kind, subject=b"")

    def value_of(self, event: ClusterSecretSet, append_time_ms: int) -> ClusterSecret:
        return ClusterSecret(current=event.current, previous=event.previous, set_ms=append_time_ms)


SECRETS = ClusterSecretFamily()


def cluster_secret(metadata: ClusterReader) -> ClusterSecret | None:
    """Return the secret that signs HTTP messages; None until one is set. Never print it."""
    return metadata.cluster_value(SECRETS, b"")


def _to_message(secret: SigningSecret) -> pb.SigningSecret:
    return pb.SigningSecret(secret_id=secret.secret_id.bytes, key=secret.key)


def _from_message(message: pb.SigningSecret) -> SigningSecret:
    try:
        return SigningSecret(secret_id=id_from_bytes(message.secret_id), key=message.key)
    except ValueError as error:
        raise CorruptError(
            "cannot read a cluster secret: its key has the wrong length",
            length_bytes=len(message.key),
            expected_bytes=SECRET_BYTES,
        ) from error
