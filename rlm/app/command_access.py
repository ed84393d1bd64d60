"""Gives a manager an address and a secret, so that commands on any host can reach and trust it."""

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
    """Represents commands' access to one run of a manager.

    Thread-safe, but only one thread may call `refresh`.
    """

    address: RegisteredAddress
    authority: MetadataAuthority
    secrets: SecretWriter

    @property
    def incarnation(self) -> UUID:
        """Return the id of this run of the manager, which its claims contain, too."""
        return self.authority.identity.incarnation

    def refresh(self) -> None:
        """Ensure that the cluster has a secret, listen, and decide the address to register.

        May wait for the brokers and DNS. Raises the errors of `SecretWriter.ensure` and
        `RegisteredAddress.refresh`.
        """
        self.secrets.ensure()
        self.address.refresh()


def open_command_access(
    config: Config,
    identity: BrokerIdentity,
    listener: ApiListener,
    metadata: RemoteLogMetadataManager,
    clock: Clock,
) -> CommandAccess:
    """Open access to the manager of the broker `identity`, with a new incarnation."""
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
