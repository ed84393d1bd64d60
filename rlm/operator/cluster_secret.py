"""Sets the cluster's secret: the first manager creates it, an operator replaces it."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from rlmm.events.secret import SECRET_BYTES, ClusterSecretSet, SigningSecret, cluster_secret
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import FencedError


class SecretWriter:
    """Writes secrets to the metadata topic. Of two concurrent writers, the last one wins."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        new_id: Callable[[], UUID],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """Create secrets with `random_bytes`, which returns as many random bytes as requested."""
        self._metadata = metadata
        self._new_id = new_id
        self._random_bytes = random_bytes

    def ensure(self) -> None:
        """Create the cluster's secret if there is none.

        Raises RetriableError if the result of the write is unknown, and FencedError if the metadata
        refuses it.
        """
        if cluster_secret(self._metadata) is None:
            self._write(previous=None)

    def rotate(self) -> ClusterSecretSet:
        """Replace the secret; return the event. The replaced secret stays valid for 10 minutes.

        The secret that preceded the replaced one becomes invalid at once. Raises the errors of
        `ensure`.
        """
        known = cluster_secret(self._metadata)
        return self._write(previous=None if known is None else known.current)

    def _write(self, previous: SigningSecret | None) -> ClusterSecretSet:
        secret = SigningSecret(secret_id=self._new_id(), key=self._random_bytes(SECRET_BYTES))
        event = ClusterSecretSet(event_id=self._new_id(), current=secret, previous=previous)
        result = self._metadata.publish(event)
        if not result.accepted:
            raise FencedError(
                "cannot set the cluster's secret: the metadata refuses it", reason=result.refusal
            )
        return event
