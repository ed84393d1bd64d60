"""Count ACLs that name hosts: they match a gateway's address, not its clients'."""

from __future__ import annotations

from rlm.broker.errors import error_of
from rlm.wire.api.describe_acls import ANY, DESCRIBE_ACLS, DescribeAclsRequest
from rlm.wire.connection import Requester
from rlm.wire.error_codes import ErrorCode

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
    """Count the cluster's ACLs for certain hosts; 0 without an authorizer.

    Raises RetriableError if DESCRIBE on the cluster is missing.
    """
    response = broker.request(DESCRIBE_ACLS, _ALL)
    if response.error_code == ErrorCode.SECURITY_DISABLED:
        return 0
    if response.error_code != ErrorCode.NONE:
        raise error_of(response.error_code, reason=response.error_message)
    return sum(acl.host != _ANY_HOST for resource in response.resources for acl in resource.acls)
