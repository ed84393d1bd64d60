"""Counts a gateway's disconnects by cause, and reads of the store by topic, client and duration.

Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from rlm.gateway.model.disconnect_cause import DisconnectCause

OTHER = "other"
_LONGEST_ID = 100
_BOUNDS_S = (
    0.0005,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    30.0,
)


class RemoteCount(Enum):
    """Represents the outcome of a read of one partition from the store."""

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
    """Counts one topic's reads from the store: partition reads, failures, and sent bytes."""

    requests: int = 0
    errors: int = 0
    size_bytes: int = 0


class ClientBytes:
    """Counts the bytes that each client id received. Not thread-safe, except `sizes`.

    Counts `limit_count` ids separately, by their first 100 characters. A further id replaces the
    longest idle id if that was idle for `idle_ms`; otherwise the further id counts as OTHER. If a
    replaced id returns, its count restarts at 0.
    """

    def __init__(self, *, limit_count: int = 100, idle_ms: int = 600_000) -> None:
        self._limit_count = limit_count
        self._idle_ms = idle_ms
        self._sizes: dict[str, int] = {}
        self._seen_ms: dict[str, int] = {}
        self._other_bytes = 0

    def add(self, client_id: str, size_bytes: int, now_ms: int) -> None:
        client_id = client_id[:_LONGEST_ID]
        if client_id not in self._sizes and not self._has_room(now_ms):
            self._other_bytes += size_bytes
            return
        self._sizes[client_id] = self._sizes.get(client_id, 0) + size_bytes
        # The id moves to the end, so that the first id is always the longest idle one.
        self._seen_ms.pop(client_id, None)
        self._seen_ms[client_id] = now_ms

    def sizes(self) -> Mapping[str, int]:
        """Return the bytes by client id; OTHER counts all further ids. Thread-safe."""
        sizes = self._sizes.copy()
        sizes[OTHER] = sizes.get(OTHER, 0) + self._other_bytes
        return sizes

    def _has_room(self, now_ms: int) -> bool:
        if len(self._sizes) < self._limit_count:
            return True
        first = next(iter(self._seen_ms))
        if now_ms - self._seen_ms[first] < self._idle_ms:
            return False
        del self._seen_ms[first]
        del self._sizes[first]
        return True


class Latencies:
    """Counts durations in buckets. One thread writes; any thread may read."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, duration_s: float) -> None:
        self._counts[bisect_left(_BOUNDS_S, duration_s)] += 1
        self.sum_s += duration_s

    def buckets(self) -> Sequence[tuple[str, int]]:
        """Return each bound in seconds, and how many durations are within it; `+Inf` is last."""
        buckets: list[tuple[str, int]] = []
        count = 0
        for bound, counted in zip((*map(str, _BOUNDS_S), "+Inf"), self._counts, strict=True):
            count += counted
            buckets.append((bound, count))
        return buckets


@dataclass(slots=True)
class GatewayCounts:
    """Represents a gateway's counts. Only its loop writes; any thread may read.

    `throttled_count`: fetches that returned no stored records because of the quota.
    `throttled_ms`: the sum over these fetches of how long the quota continued to block reads.
    `warm`: the durations of successful reads without a wait for the store; `cold`: the durations of
    those with one.
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

    def count_throttled(self, partition_count: int, throttle_ms: int) -> None:
        """Count a fetch that got no permit; the quota is the cause if `throttle_ms` is above 0."""
        outcome = RemoteCount.THROTTLED if throttle_ms else RemoteCount.QUEUE_FULL
        self.remote[outcome] += partition_count
        if throttle_ms:
            self.throttled_count += 1
            self.throttled_ms += throttle_ms

    def topic(self, name: str) -> TopicCounts:
        """Return a topic's counts; create them if there are none."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicCounts()
        return found

    def retain(self, topics: Container[str]) -> None:
        """Remove the counts of all topics that are not in `topics`."""
        for name in [each for each in self.topics if each not in topics]:
            del self.topics[name]
