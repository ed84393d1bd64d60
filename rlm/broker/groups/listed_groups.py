"""Checks that a broker lists every share group to this user.

A broker silently omits from ListGroups the groups that the user may not describe. It omits none if
the user has Describe on the cluster. DescribeCluster with authorized operations (KIP-430) shows
whether the user has that right. Source: Kafka's `KafkaApis.handleListGroupsRequest` and
`AuthHelper.computeDescribeClusterResponse`.
"""

from __future__ import annotations

from rlm.broker.errors import error_of
from rlm.facts.share_group_start import HiddenShareGroupsError
from rlm.wire.api.api_versions import API_VERSIONS, ApiVersionsResponse
from rlm.wire.api.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from rlm.wire.api.share_fetch import SHARE_FETCH
from rlm.wire.client import named_api_versions_request
from rlm.wire.connection import Requester
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import UnsupportedError

_SHARE_FEATURE = "share.version"
_FIRST_VERSION_WITH_FEATURES = 3
# AclOperation.DESCRIBE has code 8, which is the index of its bit.
_DESCRIBE_BIT = 1 << 8


def require_all_share_groups_listed(broker: Requester) -> None:
    """Raise HiddenShareGroupsError if `broker` may have share groups that it does not list.

    Also raises the errors of `Requester.request`.
    """
    if _has_share_groups(broker) and not _may_describe_cluster(broker):
        raise HiddenShareGroupsError(
            "cannot see all share groups: the user of client.* lacks Describe on the cluster",
            advice="Grant it, or set remote.local.trim.accept.hidden.share.groups=true to accept "
            "the loss of records that hidden groups have not read",
        )


def _has_share_groups(broker: Requester) -> bool:
    """Return whether `share.version`, or the preview in Kafka 4.0, allows share groups."""
    try:
        response = broker.request(
            API_VERSIONS, named_api_versions_request(), at_least=_FIRST_VERSION_WITH_FEATURES
        )
    except UnsupportedError:
        return False  # Kafka before 2.4 has no features
    if response.error_code != ErrorCode.NONE:
        raise error_of(response.error_code)
    return _allows_share_groups(response)


def _allows_share_groups(response: ApiVersionsResponse) -> bool:
    levels = {each.name: each.max_version_level for each in response.finalized_features}
    if _SHARE_FEATURE in levels:
        return levels[_SHARE_FEATURE] > 0
    if any(each.name == _SHARE_FEATURE for each in response.supported_features):
        # An absent feature has level 0, unless the broker has not read the cluster's features yet.
        return response.finalized_features_epoch < 0
    # Kafka 4.0 has a preview of share groups without the feature, if unstable APIs are enabled.
    return any(each.api_key == SHARE_FETCH.key for each in response.api_keys)


def _may_describe_cluster(broker: Requester) -> bool:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = broker.request(DESCRIBE_CLUSTER, request)
    if response.error_code != ErrorCode.NONE:
        raise error_of(response.error_code, reason=response.error_message)
    return bool(response.cluster_authorized_operations & _DESCRIBE_BIT)
