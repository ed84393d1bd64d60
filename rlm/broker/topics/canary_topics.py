"""CanaryTopics: write and read canary topics for the end-to-end check, as any client does.

The caller chooses the bootstrap address: a gateway's, or the brokers' own. The result reports
records that do not arrive in time; the check continues.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from rlm.facts.canary_records import CanaryRead, CanaryRecord, CanaryWritten


class CanaryTopics(ABC):
    """Represents a cluster's canary topics. One thread uses it; `timeout_ms` bounds each call."""

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
        """Create a topic with these replicas by partition, leader first. Raises RetriableError."""

    @abstractmethod
    def delete(self, name: str, timeout_ms: int) -> None:
        """Delete a topic; do nothing if it does not exist. Raises RetriableError."""

    @abstractmethod
    def write(
        self, address: str | None, topic: str, records: Iterable[CanaryRecord], timeout_ms: int
    ) -> CanaryWritten:
        """Write records at an address; None means the brokers' own. Raises nothing."""

    @abstractmethod
    def read(
        self, address: str | None, topic: str, ends: Mapping[int, int], timeout_ms: int
    ) -> CanaryRead:
        """Read each partition from its earliest offset to its end. Raises nothing."""
