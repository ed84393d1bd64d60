"""Reads the cluster's secret and the brokers' time from the metadata topic, for signatures."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.rest.signing import ManagerIdentity
from rlmm.events.secret import ClusterSecret, cluster_secret
from rlmm.spi import RemoteLogMetadataManager


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataCredentials:
    """Represents a client's credentials. Thread-safe. `metadata` must follow the topic."""

    metadata: RemoteLogMetadataManager
    cluster_id: str

    def secret(self) -> ClusterSecret | None:
        return cluster_secret(self.metadata)

    def broker_time_ms(self) -> int:
        return self.metadata.broker_time_ms()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataAuthority:
    """Represents a manager's credentials. Thread-safe. `metadata` must follow the topic."""

    metadata: RemoteLogMetadataManager
    identity: ManagerIdentity

    def secret(self) -> ClusterSecret | None:
        return cluster_secret(self.metadata)

    def broker_time_ms(self) -> int:
        return self.metadata.broker_time_ms()
