"""How commands on any host reach this manager and trust its answers: its address, and a secret.

refresh   listens, decides what to register, and sees that the cluster has a secret
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from uuid import UUID

from rlm.app.registered_address import RegisteredAddress, open_registered_address
from rlm.config.load import Config
from rlm.operator.cluster_secret import SecretWriter
from rlm.rest.api_listener import ApiListener
from rlm.rest.credentials import MetadataAuthority
from rlm.rest.signing import ManagerIdentity
from rlm.source.meta_properties import BrokerIdentity
from rlm.worker.fresh_id import fresh_id
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAccess:
    """One run of a manager's. `refresh` is one thread's, the rest is thread-safe."""

    address: RegisteredAddress
    authority: MetadataAuthority
    secrets: SecretWriter

    @property
    def incarnation(self) -> UUID:
        """That of this run of the manager; its claims carry it, too."""
        return self.authority.identity.incarnation

    def refresh(self) -> None:
        """May wait for other hosts and DNS. Raises as SecretWriter and RegisteredAddress do."""
        self.secrets.ensure()
        self.address.refresh()


def open_command_access(
    config: Config,
    identity: BrokerIdentity,
    listener: ApiListener,
    metadata: RemoteLogMetadataManager,
    clock: Clock,
) -> CommandAccess:
    """That of the manager of the broker of `identity`, with a fresh incarnation."""
    incarnation = fresh_id()
    return CommandAccess(
        address=open_registered_address(config, identity, listener, metadata, clock),
        authority=MetadataAuthority(
            metadata=metadata,
            identity=ManagerIdentity(
                cluster_id=identity.cluster_id,
                broker_id=identity.node_id,
                incarnation=incarnation,
            ),
        ),
        secrets=SecretWriter(metadata, fresh_id, secrets.token_bytes),
    )
