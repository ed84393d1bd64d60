"""Counts ACLs that name a host: for a gateway's clients, brokers see the gateway's address."""

from __future__ import annotations

import logging

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.host_acls import count_host_acls
from rlm.metrics.metrics import Metrics
from rsm.segment.errors import TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_MEANING = "ACLs that name a host see the gateway's address instead of its clients'"


def note_host_acls(cluster: Bootstrap, metrics: Metrics) -> None:
    """Count ACLs that name a host and warn of them; log at debug level if they cannot be listed."""
    try:
        with cluster.any_broker() as broker:
            count = count_host_acls(broker)
    except TieredStorageError as error:
        _log.debug(LogLine("cannot read the cluster's ACLs", error=error))
        return
    metrics.host_acls.set(count)
    if count:
        _log.warning(LogLine(_MEANING, acls=count))
