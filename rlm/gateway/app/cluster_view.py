"""What all sessions of a gateway know beside their own bytes, kept up to date.

The metadata is in this process and looked at at every refresh; the cluster is asked for the ids of
tiered topics and for its brokers' addresses every few seconds. A cluster that cannot be asked for a
while leaves what was known; without having heard it once there is nothing to serve by.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol
from uuid import UUID

from rlm.broker.cluster import ClusterView
from rlm.gateway.endpoints.single_broker_routing import Routing
from rlm.gateway.model.context import AnswerSettings, GatewayContext, TimestampLookup
from rlm.gateway.model.tiered_topics import tiered_topics
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError

_log = logging.getLogger(__name__)

_CLUSTER_AGE_MS = 5_000


class Cluster(Protocol):
    """The way into the cluster (rlm.broker.bootstrap.Bootstrap)."""

    def view(self, topics: tuple[str, ...]) -> ClusterView:
        """What it says of some topics, and of all brokers. RetriableError."""


class LiveFacts:
    """`refresh` is one thread's; `context` and `applied` are thread-safe and never wait.

    `positions` tells how far the metadata was applied: next offsets by partition of its topic.
    """

    def __init__(
        self,
        routing: Routing,
        *,
        cluster: Cluster,
        metadata: RemoteLogMetadataManager,
        positions: Callable[[], Mapping[int, int]],
        timestamps: TimestampLookup,
        answering: AnswerSettings,
        new_id: Callable[[], UUID],
        clock: Clock,
    ) -> None:
        self._routing = routing
        self._cluster = cluster
        self._metadata = metadata
        self._positions = positions
        self._timestamps = timestamps
        self._answering = answering
        self._new_id = new_id
        self._clock = clock
        self._topic_ids: Mapping[str, UUID] = {}
        self._partition_counts: Mapping[UUID, int] = {}
        self._asked_ms: int | None = None
        self._asked_topics: frozenset[str] = frozenset()
        self._logged: set[str] = set()  # messages, which are constants: they are few
        self._context: GatewayContext | None = None
        self._applied: Mapping[int, int] = {}

    def refresh(self) -> None:
        """Look at everything again. RetriableError as long as the cluster was never heard."""
        positions = dict(self._positions())
        policies = self._metadata.topic_policies()
        self._ask_cluster(frozenset(policy.topic for policy in policies))
        self._context = GatewayContext(
            topology=self._routing.topology(
                self._metadata.registrations(), self._metadata.broker_time_ms()
            ),
            topics=tiered_topics(policies, self._topic_ids, self._partition_counts),
            metadata=self._metadata,
            timestamps=self._timestamps,
            answering=self._answering,
            new_id=self._new_id,
        )
        self._applied = positions

    def context(self) -> GatewayContext:
        """The newest view. RetriableError before the first refresh."""
        if self._context is None:
            raise RetriableError("the cluster was not heard yet")
        return self._context

    def applied(self) -> Mapping[int, int]:
        """The positions that the newest view covers; none before the first refresh.

        What was applied since is not served by yet: a topic that was tiered in between would seem
        to begin where the broker's log does.
        """
        return self._applied

    def _ask_cluster(self, topics: frozenset[str]) -> None:
        """Ask again when the last answer is old, or lacks a topic."""
        now_ms = self._clock.monotonic_ms()
        is_fresh = self._asked_ms is not None and now_ms - self._asked_ms < _CLUSTER_AGE_MS
        if is_fresh and topics <= self._asked_topics:
            return
        try:
            view = self._cluster.view(tuple(sorted(topics)))
            self._routing.update(view)
        except TieredStorageError as error:
            if self._asked_ms is None:
                raise RetriableError("the cluster cannot be looked up", reason=error) from error
            if error.message not in self._logged:
                self._logged.add(error.message)
                _log.warning("cluster cannot be asked", extra={"error": error})
            return
        self._logged.clear()
        self._topic_ids = {name: topic.topic_id for name, topic in view.topics.items()}
        self._partition_counts = {
            topic.topic_id: len(topic.partitions) for topic in view.topics.values()
        }
        self._asked_ms, self._asked_topics = now_ms, topics
