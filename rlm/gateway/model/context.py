"""What a rewrite may use in addition to the message: gateway addresses and stored data."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from rlm.gateway.model.advertised_brokers import GatewayTopology
from rlm.gateway.model.tiered_topics import TieredTopics
from rlm.remote_read.timestamps import FoundRecord
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.ids import TopicIdPartition


class TimestampLookup(Protocol):
    """Searches stored segments by time (rlm.remote_read.timestamps). Blocking, thread-safe."""

    def record_since(
        self,
        topic_id_partition: TopicIdPartition,
        timestamp_ms: int,
        *,
        below_offset: int | None = None,
    ) -> FoundRecord | None:
        """Return the first stored record at or after a time.

        Skips segments from `below_offset` on; the record itself may be at or above it.
        """

    def record_of_max_timestamp(
        self, topic_id_partition: TopicIdPartition, *, above_ms: int = -1
    ) -> FoundRecord | None:
        """Return the first stored record with the greatest timestamp, if above `above_ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySettings:
    """The thread pools and the timeout of rewrites. The pools limit how many calls block at once.

    `store` runs calls that wait for the store. `topic` runs calls that wait for the metadata topic
    alone, so that a hanging store does not delay them. Rewrites run in neither. `timeout_ms` limits
    the rewrite of one request.
    """

    store: Executor
    topic: Executor
    clock: Clock
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayContext:
    """A snapshot; get the newest one for each request. All its objects are thread-safe.

    `topology` and `topics` are values. `metadata` and `timestamps` may block, so only blocking
    rewrites use them. `started_ms` is when the client's wait for a rewrite began, by the clock of
    `query_settings`; None means now.
    """

    topology: GatewayTopology
    topics: TieredTopics
    metadata: RemoteLogMetadataManager
    timestamps: TimestampLookup
    query_settings: QuerySettings
    new_id: Callable[[], UUID]
    started_ms: int | None = None
