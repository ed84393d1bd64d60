"""Reaches a cluster through any of its bootstrap servers.

First tries the server that answered most recently. So a host that is down or frozen delays only one
request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rlm.broker.cluster import BrokerAddress, ClusterView, fetch_cluster_view
from rlm.wire.connection import Requester
from rsm.segment.errors import RetriableError, TieredStorageError


class OpenConnection(Requester, Protocol):
    """Represents a connection; its opener closes it."""

    def is_expired(self) -> bool:
        """Return whether the broker may soon close the connection."""

    def close(self) -> None:
        """Close the connection; idempotent."""


class BrokerConnector(Protocol):
    """Opens connections (rlm.wire.connection.Connector). Thread-safe."""

    def connect(self, host: str, port: int) -> OpenConnection:
        """Open a connection. Raises RetriableError, CorruptError or UnsupportedError."""


class Bootstrap:
    """Represents the brokers of one cluster, found by its bootstrap servers. Thread-safe."""

    def __init__(self, servers: Iterable[tuple[str, int]], connector: BrokerConnector) -> None:
        self._servers = tuple(servers)
        self._connector = connector
        self._first = 0  # This server is tried first. Any index works, so threads may overwrite it.

    def view(self, topics: Iterable[str] | None = None) -> ClusterView:
        """Fetch a reachable server's view of `topics`; of all topics if None.

        Raises the errors of `any_broker` and `fetch_cluster_view`.
        """
        asked = None if topics is None else tuple(topics)
        with self.any_broker() as broker:
            return fetch_cluster_view(broker, asked)

    @contextmanager
    def any_broker(self) -> Iterator[Requester]:
        """Connect to a reachable server until the context ends.

        First tries the server that answered most recently; the next one if a request to that server
        has failed since. Then tries the others in the order of the setting. Raises RetriableError
        with the last server's error if none is reachable.
        """
        index, connection = self._first_reachable()
        try:
            yield connection
        except RetriableError:
            self._try_first(index + 1)
            raise
        finally:
            connection.close()

    @contextmanager
    def at(self, address: BrokerAddress) -> Iterator[Requester]:
        """Connect to one broker until the context ends.

        Raises the errors of `BrokerConnector.connect`.
        """
        connection = self.open(address)
        try:
            yield connection
        finally:
            connection.close()

    def open(self, address: BrokerAddress) -> OpenConnection:
        """Open a connection, which the caller closes.

        Raises the errors of `BrokerConnector.connect`.
        """
        return self._connector.connect(address.host, address.port)

    def _first_reachable(self) -> tuple[int, OpenConnection]:
        """Return the index of a reachable server, and a connection to it."""
        failure: TieredStorageError | None = None
        count = len(self._servers)
        first = self._first
        for index in range(first, first + count):
            try:
                connection = self._connector.connect(*self._servers[index % count])
            except TieredStorageError as error:
                failure = error
            else:
                self._try_first(index)
                return index, connection
        raise RetriableError(
            "no bootstrap server answers",
            bootstrap_servers=",".join(f"{host}:{port}" for host, port in self._servers),
            reason=failure,
            advice="Check bootstrap.servers and the network",
        ) from failure

    def _try_first(self, index: int) -> None:
        self._first = index % len(self._servers)
