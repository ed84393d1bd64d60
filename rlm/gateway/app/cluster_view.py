"""Keeps the view of the cluster and its metadata that all sessions of a gateway share.

Each refresh reads the metadata cache of this process. If the cluster's last response is at least 5
seconds old, or a topic has gained a policy since, the refresh also requests topic ids, partition
counts and broker addresses. While the cluster does not answer, the gateway uses the last response.
Before the first response there is no view, and the gateway cannot serve clients.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol
from uuid import UUID

from rlm.broker.cluster import ClusterView
from rlm.gateway.endpoints.routing import Routing
from rlm.gateway.model.context import GatewayContext, QuerySettings, TimestampLookup
from rlm.gateway.model.tiered_topics import tiered_topics
from rlmm.events.policy import topic_policies
from rlmm.events.registration import dated_registrations
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_CLUSTER_AGE_MS = 5_000
_UNREAD = "cannot update the view of the cluster's brokers and topics"


class Cluster(Protocol):
    """Represents the connection to the cluster (rlm.broker.bootstrap.Bootstrap)."""

    def view(self, topics: tuple[str, ...]) -> ClusterView:
        """Request these topics and all brokers. Raises RetriableError."""


class LiveFacts:
    """Represents the newest view of the cluster and its metadata.

    Call `refresh` from one thread. `context` and `applied` are thread-safe and never block.
    `positions` returns the next offset to apply for each partition of the metadata topic.
    """

    def __init__(
        self,
        routing: Routing,
        *,
        cluster: Cluster,
        metadata: RemoteLogMetadataManager,
        positions: Callable[[], Mapping[int, int]],
        timestamps: TimestampLookup,
        query_settings: QuerySettings,
        new_id: Callable[[], UUID],
        clock: Clock,
    ) -> None:
        self._routing = routing
        self._cluster = cluster
        self._metadata = metadata
        self._positions = positions
        self._timestamps = timestamps
        self._query_settings = query_settings
        self._new_id = new_id
        self._clock = clock
        self._topic_ids: Mapping[str, UUID] = {}
        self._partition_counts: Mapping[UUID, int] = {}
        self._asked_ms: int | None = None
        self._asked_topics: frozenset[str] = frozenset()
        self._logged: set[str] = set()  # The set is bounded, because messages are constants.
        self._context: GatewayContext | None = None
        self._applied: Mapping[int, int] = {}

    def refresh(self) -> None:
        """Build a new view. Raises RetriableError until the cluster has answered once."""
        positions = dict(self._positions())
        policies = topic_policies(self._metadata)
        self._ask_cluster(frozenset(policy.topic for policy in policies))
        self._context = GatewayContext(
            topology=self._routing.topology(*dated_registrations(self._metadata)),
            topics=tiered_topics(policies, self._topic_ids, self._partition_counts),
            metadata=self._metadata,
            timestamps=self._timestamps,
            query_settings=self._query_settings,
            new_id=self._new_id,
        )
        self._applied = positions

    def context(self) -> GatewayContext:
        """Return the newest view. Raises RetriableError before the first refresh."""
        if self._context is None:
            raise RetriableError("cannot serve clients: the cluster has not answered yet")
        return self._context

    def applied(self) -> Mapping[int, int]:
        """Return the positions that the newest view covers; empty before the first refresh.

        Sessions may still ignore later events. For example, a topic that a later event tiers still
        counts as not tiered.
        """
        return self._applied

    def _ask_cluster(self, topics: frozenset[str]) -> None:
        """Request a new view if the last response is old or does not cover all of these topics."""
        now_ms = self._clock.monotonic_ms()
        is_fresh = self._asked_ms is not None and now_ms - self._asked_ms < _CLUSTER_AGE_MS
        if is_fresh and topics <= self._asked_topics:
            return
        try:
            view = self._cluster.view(tuple(sorted(topics)))
            self._routing.update(view)
        except TieredStorageError as error:
            if self._asked_ms is None:
                raise RetriableError(_UNREAD, reason=error) from error
            if error.message not in self._logged:
                self._logged.add(error.message)
                _log.warning(LogLine(f"{_UNREAD}: using the last response", error=error))
            return
        self._logged.clear()
        self._topic_ids = {name: topic.topic_id for name, topic in view.topics.items()}
        self._partition_counts = {
            topic.topic_id: len(topic.partitions) for topic in view.topics.values()
        }
        self._asked_ms, self._asked_topics = now_ms, topics
