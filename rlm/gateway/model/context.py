"""Defines what rewrites may use in addition to the message: gateway addresses and stored data."""

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
    """Searches stored segments by timestamp (rlm.remote_read.timestamps).

    Blocking, thread-safe.
    """

    def record_since(
        self,
        topic_id_partition: TopicIdPartition,
        timestamp_ms: int,
        *,
        below_offset: int | None = None,
    ) -> FoundRecord | None:
        """Return the first stored record with a timestamp of at least `timestamp_ms`, if any.

        Skips segments that start at or above `below_offset`. The record itself may be at or above
        that offset.
        """

    def record_of_max_timestamp(
        self, topic_id_partition: TopicIdPartition, *, above_ms: int = -1
    ) -> FoundRecord | None:
        """Return the first record with the greatest timestamp; None if not above `above_ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySettings:
    """Represents the timeout of rewrites, and the thread pools that limit their blocking calls.

    `store` runs calls that wait for the store. `topic` runs calls that wait only for the metadata
    topic, so that a hanging store does not delay them. Rewrites themselves run in other pools.
    `timeout_ms` limits the rewrite of one request.
    """

    store: Executor
    topic: Executor
    clock: Clock
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayContext:
    """Represents a snapshot of what rewrites use; get a new one for each request.

    All its objects are thread-safe. `topology` and `topics` are immutable values. `metadata` and
    `timestamps` may block, so only blocking rewrites use them. `started_ms` is when the client's
    wait for a rewrite began, by the clock of `query_settings`; None means now.
    """

    topology: GatewayTopology
    topics: TieredTopics
    metadata: RemoteLogMetadataManager
    timestamps: TimestampLookup
    query_settings: QuerySettings
    new_id: Callable[[], UUID]
    started_ms: int | None = None
