"""Opens the HTTP client for the managers of a command's cluster.

This is a separate module so that commands without this client do not import it: the import takes a
third of the start-up time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from rlm.broker.cluster_offsets import fetch_cluster_offsets
from rlm.cli.invocation.managers import LeadingManagers, ManagerCopyProgress
from rlm.cli.invocation.session import CommandSession, leaders_of
from rlm.rest.credentials import MetadataCredentials
from rlm.rest.manager_client import ManagerClient
from rlm.tls.http_tls import client_context
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition


def manager_client(session: CommandSession) -> ManagerClient:
    """Return a client for the managers of the session's cluster; the caller closes it.

    Raises InvalidConfigError if the trust store cannot be read.
    """
    return ManagerClient(
        MetadataCredentials(metadata=session.metadata, cluster_id=session.cluster_id),
        client_context(session.config.rest_tls),
    )


def leading_managers(session: CommandSession, client: ManagerClient) -> LeadingManagers:
    """Return access to the managers that decide for a topic's partitions."""
    return LeadingManagers(session.metadata, client, partial(leaders_of, session), session.clock)


def copy_progress(session: CommandSession, client: ManagerClient) -> ManagerCopyProgress:
    """Return access to the progress of copies and streams, as managers and brokers report it."""
    return ManagerCopyProgress(leading_managers(session, client), partial(_committed_ends, session))


def _committed_ends(
    session: CommandSession, partitions: Collection[TopicIdPartition]
) -> Mapping[TopicIdPartition, int]:
    try:
        view = session.bootstrap.view({each.topic for each in partitions})
    except RetriableError:
        return {}
    found = fetch_cluster_offsets(session.bootstrap, view, partitions)
    return {tip: offsets.committed_end_offset for tip, offsets in found.succeeded.items()}
