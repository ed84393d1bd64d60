"""Sets the cluster's secret: the first manager makes one, an operator replaces it."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from rlmm.events.secrets import SECRET_BYTES, ClusterSecretSet, SigningSecret
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.errors import FencedError


class SecretWriter:
    """Writes secrets to the metadata topic. Of two writers at once the last one holds."""

    def __init__(
        self,
        metadata: RemoteLogMetadataManager,
        new_id: Callable[[], UUID],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """`random_bytes` gives so many bytes that nobody can guess."""
        self._metadata = metadata
        self._new_id = new_id
        self._random_bytes = random_bytes

    def ensure(self) -> None:
        """Return when the cluster has a secret, and make one if it has none.

        Raises RetriableError if it is not known whether that was written.
        """
        if self._metadata.cluster_secret() is None:
            self._write(previous=None)

    def rotate(self) -> ClusterSecretSet:
        """Replace the secret; what was written. `previous` stays valid for 10 minutes, if any.

        The one before that is valid no longer. Raises as `ensure`.
        """
        known = self._metadata.cluster_secret()
        return self._write(previous=None if known is None else known.current)

    def _write(self, previous: SigningSecret | None) -> ClusterSecretSet:
        secret = SigningSecret(secret_id=self._new_id(), key=self._random_bytes(SECRET_BYTES))
        event = ClusterSecretSet(event_id=self._new_id(), current=secret, previous=previous)
        result = self._metadata.publish(event)
        if not result.accepted:
            raise FencedError("the cluster's secret was refused", reason=result.refusal)
        return event
