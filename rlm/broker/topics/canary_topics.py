"""Defines how the end-to-end check creates, writes, reads and deletes canary topics.

The caller chooses the bootstrap address: a gateway's or the brokers'. If records do not arrive in
time, the result describes the problem and the check continues.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from rlm.facts.canary_records import CanaryRead, CanaryRecord, CanaryWritten


class CanaryTopics(ABC):
    """Represents a cluster's canary topics. Not thread-safe; `timeout_ms` limits each call."""

    @abstractmethod
    def names(self, timeout_ms: int) -> Sequence[str]:
        """Return the names of all topics. Raises RetriableError."""

    @abstractmethod
    def create(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        configs: Mapping[str, str],
        timeout_ms: int,
    ) -> None:
        """Create a topic; `replicas` are by partition, leader first. Raises RetriableError."""

    @abstractmethod
    def delete(self, name: str, timeout_ms: int) -> None:
        """Delete a topic; do nothing if it does not exist. Raises RetriableError."""

    @abstractmethod
    def write(
        self, address: str | None, topic: str, records: Iterable[CanaryRecord], timeout_ms: int
    ) -> CanaryWritten:
        """Write records through `address`; None means the brokers'. Kafka errors are not raised.

        `problem` in the result is set if a partition received none of its records.
        """

    @abstractmethod
    def read(
        self, address: str | None, topic: str, ends: Mapping[int, int], timeout_ms: int
    ) -> CanaryRead:
        """Read each partition from its earliest offset to its end. Kafka errors are not raised."""
