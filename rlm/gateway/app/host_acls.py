"""Counts ACLs that name a host: brokers compare it with the gateway's address, not a client's."""

from __future__ import annotations

import logging

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.errors import error_of
from rlm.metrics.metrics import Metrics
from rlm.wire.api.describe_acls import ANY, DESCRIBE_ACLS, DescribeAclsRequest
from rlm.wire.connection import Requester
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_MEANING = "ACLs that name a host match the gateway's address instead of its clients'"
_ANY_HOST = "*"
_ALL = DescribeAclsRequest(
    resource_type_filter=ANY,
    resource_name_filter=None,
    pattern_type_filter=ANY,
    principal_filter=None,
    host_filter=None,
    operation=ANY,
    permission_type=ANY,
)


def count_host_acls(broker: Requester) -> int:
    """Count the cluster's ACLs that name a host; 0 if the cluster has no authorizer.

    Raises RetriableError if the user lacks Describe on the cluster.
    """
    response = broker.request(DESCRIBE_ACLS, _ALL)
    if response.error_code == ErrorCode.SECURITY_DISABLED:
        return 0
    if response.error_code != ErrorCode.NONE:
        raise error_of(response.error_code, reason=response.error_message)
    return sum(acl.host != _ANY_HOST for resource in response.resources for acl in resource.acls)


def note_host_acls(cluster: Bootstrap, metrics: Metrics) -> None:
    """Count ACLs that name a host, and warn if there are any. Logs an error at debug level."""
    try:
        with cluster.any_broker() as broker:
            count = count_host_acls(broker)
    except TieredStorageError as error:
        _log.debug(LogLine("cannot read the cluster's ACLs", error=error))
        return
    metrics.host_acls.set(count)
    if count:
        _log.warning(LogLine(_MEANING, acls=count))
