"""Lists all APIs whose messages the gateway changes, except Fetch.

Frames of other APIs are opaque, except that the gateway also reads the responses of SASL logins.
Responses in versions outside of a row's `versions` are opaque, too. The gateway refuses requests in
versions outside of those of an ExchangeRewrite's API.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rlm.gateway.model.rewrite import ExchangeRewrite, ResponseRewrite, StreamRewrite
from rlm.gateway.rewriting.addresses import (
    rewrite_describe_cluster,
    rewrite_find_coordinator,
    rewrite_leader_endpoints,
    scan_metadata,
    scan_share_fetch,
)
from rlm.gateway.rewriting.api_versions import rewrite_api_versions
from rlm.gateway.rewriting.delete_records import can_change_delete_records, rewrite_delete_records
from rlm.gateway.rewriting.leader_epochs import can_change_leader_epochs, rewrite_leader_epochs
from rlm.gateway.rewriting.list_offsets import (
    can_change_list_offsets,
    list_offsets_waits_for_store,
    request_log_start,
    rewrite_list_offsets,
)
from rlm.gateway.rewriting.retention_configs import (
    can_change_retention_configs,
    pass_alter_configs,
    pass_incremental_alter_configs,
    rewrite_alter_configs,
    rewrite_incremental_alter_configs,
)
from rlm.wire.api.alter_configs import ALTER_CONFIGS
from rlm.wire.api.api_versions import API_VERSIONS
from rlm.wire.api.delete_records import DELETE_RECORDS
from rlm.wire.api.describe_cluster import DESCRIBE_CLUSTER
from rlm.wire.api.find_coordinator import FIND_COORDINATOR
from rlm.wire.api.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from rlm.wire.api.list_offsets import LIST_OFFSETS
from rlm.wire.api.metadata import METADATA
from rlm.wire.api.offset_for_leader_epoch import OFFSET_FOR_LEADER_EPOCH
from rlm.wire.api.produce import PRODUCE
from rlm.wire.api.share_acknowledge import SHARE_ACKNOWLEDGE
from rlm.wire.api.share_fetch import SHARE_FETCH
from rlm.wire.schema import Versions

Rewrite = ResponseRewrite[Any, Any] | StreamRewrite[Any, Any] | ExchangeRewrite[Any, Any]

_ALL: tuple[Rewrite, ...] = (
    ResponseRewrite(api=API_VERSIONS, response=rewrite_api_versions),
    StreamRewrite(api=METADATA, scanner=scan_metadata),
    ResponseRewrite(api=FIND_COORDINATOR, response=rewrite_find_coordinator),
    ResponseRewrite(api=DESCRIBE_CLUSTER, response=rewrite_describe_cluster),
    ResponseRewrite(api=PRODUCE, response=rewrite_leader_endpoints, versions=Versions.parse("10+")),
    StreamRewrite(api=SHARE_FETCH, scanner=scan_share_fetch),
    ResponseRewrite(api=SHARE_ACKNOWLEDGE, response=rewrite_leader_endpoints),
    ExchangeRewrite(
        api=LIST_OFFSETS,
        can_change=can_change_list_offsets,
        request=request_log_start,
        response=rewrite_list_offsets,
        waits_for_store=list_offsets_waits_for_store,
        names=lambda request: (topic.name for topic in request.topics),
    ),
    ExchangeRewrite(
        api=OFFSET_FOR_LEADER_EPOCH,
        can_change=can_change_leader_epochs,
        response=rewrite_leader_epochs,
        names=lambda request: (topic.topic for topic in request.topics),
    ),
    ExchangeRewrite(
        api=DELETE_RECORDS,
        can_change=can_change_delete_records,
        response=rewrite_delete_records,
        names=lambda request: (topic.name for topic in request.topics),
    ),
    ExchangeRewrite(
        api=ALTER_CONFIGS,
        can_change=can_change_retention_configs,
        request=pass_alter_configs,
        response=rewrite_alter_configs,
    ),
    ExchangeRewrite(
        api=INCREMENTAL_ALTER_CONFIGS,
        can_change=can_change_retention_configs,
        request=pass_incremental_alter_configs,
        response=rewrite_incremental_alter_configs,
    ),
)

REWRITES: Mapping[int, Rewrite] = MappingProxyType({row.api.key: row for row in _ALL})
