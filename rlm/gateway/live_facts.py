"""What all sessions of a gateway know beside their own bytes, kept up to date.

The metadata is in this process and looked at at every refresh; the cluster is asked for the ids of
tiered topics and for the broker's address every few seconds. A cluster that can't be asked for a
while leaves what was known; without having heard it once there is nothing to serve by.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from rlm.broker.cluster import ClusterView
from rlm.config.values import HostPort
from rlm.gateway.context import GatewayContext, TimestampLookup
from rlm.gateway.tiered_topics import tiered_topics
from rlm.gateway.topology import topology_of
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError

_log = logging.getLogger(__name__)

_CLUSTER_AGE_MS = 5_000


class Cluster(Protocol):
    """The way into the cluster (rlm.broker.bootstrap.Bootstrap)."""

    def view(self, topics: tuple[str, ...]) -> ClusterView:
        """What it says of some topics, and of all brokers. RetriableError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which broker a gateway is beside, and where clients are to find whom.

    `own` is where this gateway is found; `fixed` and `direct_if_unserved` as in `topology_of`.
    """

    node_id: int
    own: HostPort
    fixed: Mapping[int, HostPort] = field(default_factory=dict)
    direct_if_unserved: bool = False


class LiveFacts:
    """`refresh` is one thread's; `context` and `upstream` are thread-safe and never wait."""

    def __init__(
        self,
        place: Place,
        *,
        cluster: Cluster,
        metadata: RemoteLogMetadataManager,
        timestamps: TimestampLookup,
        new_id: Callable[[], UUID],
        clock: Clock,
    ) -> None:
        self._place = place
        self._cluster = cluster
        self._metadata = metadata
        self._timestamps = timestamps
        self._new_id = new_id
        self._clock = clock
        self._topic_ids: Mapping[str, UUID] = {}
        self._asked_ms: int | None = None
        self._asked_topics: frozenset[str] = frozenset()
        self._upstream: HostPort | None = None
        self._context: GatewayContext | None = None

    def refresh(self) -> None:
        """Look at everything again. RetriableError as long as the cluster was never heard."""
        policies = self._metadata.topic_policies()
        self._ask_cluster(frozenset(policy.topic for policy in policies))
        place = self._place
        self._context = GatewayContext(
            node_id=place.node_id,
            topology=topology_of(
                self._metadata.registrations(),
                broker_time_ms=self._metadata.broker_time_ms(),
                own={place.node_id: place.own},
                fixed=place.fixed,
                direct_if_unserved=place.direct_if_unserved,
            ),
            topics=tiered_topics(policies, self._topic_ids),
            metadata=self._metadata,
            timestamps=self._timestamps,
            new_id=self._new_id,
        )

    def context(self) -> GatewayContext:
        """The newest view. RetriableError before the first refresh."""
        if self._context is None:
            raise RetriableError("the cluster was not heard yet")
        return self._context

    def upstream(self) -> HostPort:
        """Where the broker is. RetriableError before the first refresh."""
        if self._upstream is None:
            raise RetriableError("the broker's address is not known yet")
        return self._upstream

    def _ask_cluster(self, topics: frozenset[str]) -> None:
        """Ask anew when the last answer is old, or lacks a topic."""
        now_ms = self._clock.monotonic_ms()
        is_fresh = self._asked_ms is not None and now_ms - self._asked_ms < _CLUSTER_AGE_MS
        if is_fresh and topics <= self._asked_topics:
            return
        try:
            view = self._cluster.view(tuple(sorted(topics)))
            broker = view.broker(self._place.node_id)
        except TieredStorageError as error:
            if self._upstream is None:
                raise RetriableError("the broker can't be looked up", reason=error) from error
            _log.warning("cluster can't be asked", extra={"error": error})
            return
        self._upstream = HostPort(host=broker.host, port=broker.port)
        self._topic_ids = {name: topic.topic_id for name, topic in view.topics.items()}
        self._asked_ms, self._asked_topics = now_ms, topics
