"""Lists the responses that contain hosts and ports of brokers.

A client that connects to these bypasses the gateway. Every such response is in one of the two
tables, for every version that `BROKER_APIS` allows. A test compares the tables with Kafka's own
schemas. The gateway does not offer a new version or API until it is listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rlm.wire.api.describe_cluster import DESCRIBE_CLUSTER
from rlm.wire.api.fetch import FETCH
from rlm.wire.api.find_coordinator import FIND_COORDINATOR
from rlm.wire.api.metadata import METADATA
from rlm.wire.api.produce import PRODUCE
from rlm.wire.api.share_acknowledge import SHARE_ACKNOWLEDGE
from rlm.wire.api.share_fetch import SHARE_FETCH
from rlm.wire.schema import Api

# The gateway replaces their addresses; in streamed Fetch and ShareFetch responses it removes them.
REWRITTEN: Mapping[int, Api[Any, Any]] = MappingProxyType(
    {
        api.key: api
        for api in (
            FETCH,
            PRODUCE,
            METADATA,
            FIND_COORDINATOR,
            DESCRIBE_CLUSTER,
            SHARE_FETCH,
            SHARE_ACKNOWLEDGE,
        )
    }
)

# A client does not produce to or consume from these addresses, so they stay unchanged.
KEPT: Mapping[int, str] = MappingProxyType(
    {
        55: "DescribeQuorum: listeners of controllers, which admin tools print",
        88: "StreamsGroupHeartbeat: endpoints that applications gave for each other",
        89: "StreamsGroupDescribe: endpoints that applications gave for each other",
    }
)
