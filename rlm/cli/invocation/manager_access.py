"""How a command asks the managers of its cluster.

A module of its own: a command that asks no manager does not import an HTTP client, which would be
a third of the time that its start takes.
"""

from __future__ import annotations

from rlm.cli.invocation.session import CommandSession
from rlm.rest.credentials import MetadataCredentials
from rlm.rest.manager_client import ManagerClient
from rlm.tls.http_tls import client_context


def manager_client(session: CommandSession) -> ManagerClient:
    """What asks the managers of the session's cluster; the caller closes it.

    InvalidConfigError if the trust store cannot be read.
    """
    return ManagerClient(
        MetadataCredentials(metadata=session.metadata, cluster_id=session.cluster_id),
        client_context(session.config.rest_tls),
    )
