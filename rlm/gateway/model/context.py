"""What a rewrite may know beside the message: where gateways are, and what is stored."""

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
        """The first stored record at or after a time, below an offset if one is given."""

    def record_of_max_timestamp(
        self, topic_id_partition: TopicIdPartition, *, above_ms: int = -1
    ) -> FoundRecord | None:
        """The first stored record of the greatest timestamp, if that is above `above_ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """How rewrites answer what has to be waited for: the pools bound how many at once.

    `store` runs what waits for the store, `topic` what waits for the metadata topic alone, which a
    store that hangs must not keep. Rewrites run in neither. `timeout_ms` bounds a request's
    rewrite.
    """

    store: Executor
    topic: Executor
    clock: Clock
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayContext:
    """One moment's view: take a new one for each request. All that it leads to is thread-safe.

    `topology` and `topics` are values; `metadata` and `timestamps` may block, and are asked by
    blocking rewrites only. `started_ms`, by the clock of `answering`: since when the client waits
    for a rewrite; None: only now.
    """

    topology: GatewayTopology
    topics: TieredTopics
    metadata: RemoteLogMetadataManager
    timestamps: TimestampLookup
    answering: AnswerSettings
    new_id: Callable[[], UUID]
    started_ms: int | None = None
