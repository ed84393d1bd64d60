"""What a gateway counts: disconnects by cause, and reads from the store by topic and client."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from rlm.gateway.model.client_bytes import ClientBytes
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.model.latencies import Latencies


class RemoteCount(Enum):
    """The outcome of a partition that was to be read from the store."""

    SERVED = "served"
    READING = "reading"
    THROTTLED = "throttled"
    QUEUE_FULL = "queue_full"
    OUT_OF_RANGE = "out_of_range"
    DIVERGING = "diverging"
    GAP = "gap"
    STORAGE_ERROR = "storage_error"


@dataclass(slots=True)
class TopicCounts:
    """Reads of one topic: partitions' parts of fetches, those that failed, bytes sent."""

    requests: int = 0
    errors: int = 0
    size_bytes: int = 0


@dataclass(slots=True)
class GatewayCounts:
    """A gateway's counts. Only its loop writes; any thread may read.

    The quota throttled `throttled_count` responses for `throttled_ms` in all. `warm` and `cold`:
    the durations of reads that found their first batch in memory, or did not.
    """

    connections: int = 0
    accepted: int = 0
    closed: Counter[DisconnectCause] = field(default_factory=Counter)
    remote: Counter[RemoteCount] = field(default_factory=Counter)
    remote_bytes: int = 0
    topics: dict[str, TopicCounts] = field(default_factory=dict)
    clients: ClientBytes = field(default_factory=ClientBytes)
    throttled_count: int = 0
    throttled_ms: int = 0
    warm: Latencies = field(default_factory=Latencies)
    cold: Latencies = field(default_factory=Latencies)

    def throttled(self, partition_count: int, throttle_ms: int) -> None:
        """Count a fetch without a permit, due to the quota if `throttle_ms` is above 0."""
        outcome = RemoteCount.THROTTLED if throttle_ms else RemoteCount.QUEUE_FULL
        self.remote[outcome] += partition_count
        if throttle_ms:
            self.throttled_count += 1
            self.throttled_ms += throttle_ms

    def topic(self, name: str) -> TopicCounts:
        """Return a topic's counts; there is an entry for each topic that was tiered."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicCounts()
        return found
