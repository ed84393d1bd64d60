"""Sends requests to this host's broker, whose log directories this process reads.

Owns one connection. Requests only Metadata from a bootstrap server, to find the broker by its node
id. After a failed connection attempt, requests fail at once until the back-off ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from rlm.broker.bootstrap import Bootstrap, OpenConnection
from rlm.broker.cluster import ClusterView, fetch_cluster_view
from rlm.broker.delete_records import delete_records
from rlm.broker.errors import ForeignClusterError
from rlm.broker.list_offsets import fetch_first_offsets_since, fetch_partition_offsets
from rlm.broker.partition_results import PartitionResults
from rlm.broker.shared_offsets import SharedOffsets
from rlm.broker.spi import Broker, RecordDeletion
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.wire.connection import Requester
from rsm.segment.clock import Clock
from rsm.segment.errors import (
    NotFoundError,
    RetriableError,
    TieredStorageError,
)
from rsm.segment.ids import TopicIdPartition

_ResultT = TypeVar("_ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconnectBackoff:
    """Represents the pauses between connection attempts, which double up to `longest_ms`."""

    first_ms: int = 100
    longest_ms: int = 10_000

    def pause_ms(self, failures: int) -> int:
        """Return the pause after this number of consecutive failures."""
        return min(self.longest_ms, self.first_ms << min(failures - 1, 30))


class OwnBroker(Broker):
    """Represents one broker of one cluster. Thread-safe: callers wait for each other.

    Every request raises RetriableError while the broker is unreachable, and raises it at once
    during the back-off. A request that opens a connection raises ForeignClusterError if the
    bootstrap servers belong to another cluster. A request raises UnsupportedError if the broker is
    too old, and CorruptError if a response is invalid. A request after `close` opens another
    connection.
    """

    def __init__(
        self,
        bootstrap: Bootstrap,
        clock: Clock,
        *,
        node_id: int,
        cluster_id: str,
        backoff: ReconnectBackoff,
    ) -> None:
        self._bootstrap = bootstrap
        self._clock = clock
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._backoff = backoff
        self._lock = threading.Lock()
        self._shared_offsets = SharedOffsets(self._put_offsets)
        self._connection: OpenConnection | None = None
        self._failures = 0
        self._last_failure: TieredStorageError | None = None
        self._not_before_ms = 0

    @property
    def node_id(self) -> int:
        return self._node_id

    def view(self, topics: Iterable[str] | None = None) -> ClusterView:
        """Return this broker's view of the cluster with `topics`, or with all topics if None."""
        asked = None if topics is None else tuple(topics)
        return self._ask(lambda broker: fetch_cluster_view(broker, asked))

    def leadership(self, topics: Iterable[str] | None = None) -> Mapping[TopicIdPartition, int]:
        return self.view(topics).led_by(self._node_id)

    def offsets(
        self, leader_epochs: Mapping[TopicIdPartition, int]
    ) -> PartitionResults[PartitionOffsets]:
        return self._shared_offsets.of(leader_epochs)

    def first_offsets_since(
        self, leader_epochs: Mapping[TopicIdPartition, int], since_ms: int
    ) -> PartitionResults[int | None]:
        return self._ask(lambda broker: fetch_first_offsets_since(broker, leader_epochs, since_ms))

    def delete_records(
        self, deletions: Mapping[TopicIdPartition, RecordDeletion]
    ) -> PartitionResults[int]:
        return self._ask(lambda broker: delete_records(broker, deletions))

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _put_offsets(
        self, asked: Callable[[], Mapping[TopicIdPartition, int]]
    ) -> PartitionResults[PartitionOffsets]:
        """Call `asked` when the connection is free, and fetch the offsets of its result."""
        return self._ask(lambda broker: fetch_partition_offsets(broker, asked()))

    def _ask(self, request: Callable[[Requester], _ResultT]) -> _ResultT:
        with self._lock:
            connection = self._connected()
            try:
                return request(connection)
            except TieredStorageError:
                # The connection may be broken or out of sync, so the next call opens another.
                self._drop()
                raise

    def _connected(self) -> OpenConnection:
        if self._connection is not None and self._connection.is_expired():
            self._drop()
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> OpenConnection:
        if self._clock.monotonic_ms() < self._not_before_ms:
            raise RetriableError(
                "cannot reach this host's broker: the last attempt failed a moment ago",
                node_id=self._node_id,
                reason=self._last_failure,
            )
        try:
            connection = self._find_and_open()
        except TieredStorageError as error:
            self._failures += 1
            self._last_failure = error
            pause_ms = self._backoff.pause_ms(self._failures)
            self._not_before_ms = self._clock.monotonic_ms() + pause_ms
            raise
        self._failures = 0
        self._last_failure = None
        return connection

    def _find_and_open(self) -> OpenConnection:
        view = self._bootstrap.view(())
        if view.cluster_id != self._cluster_id:
            raise ForeignClusterError(
                "the bootstrap servers belong to another cluster",
                key="bootstrap.servers",
                expected_id=self._cluster_id,
                found_id=view.cluster_id,
            )
        try:
            address = view.broker(self._node_id)
        except NotFoundError as error:
            raise RetriableError(
                "cannot connect to this host's broker: it is not registered in the cluster",
                node_id=self._node_id,
            ) from error
        return self._bootstrap.open(address)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
