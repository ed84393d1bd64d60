"""CanaryTopics: what the end-to-end check does as any client of the cluster does it.

Records are written and read at a bootstrap address of the caller's choice: a gateway's, or the
brokers' own. What does not arrive in time is reported, not raised: the check goes on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRecord:
    """A record of a canary topic; no two are equal."""

    partition: int
    value: bytes
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryWritten:
    """Where each record that was acknowledged is; `problem` says what was not, else empty."""

    positions: Mapping[tuple[int, int], bytes]
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryRead:
    """Records by partition and offset, and the earliest offset that the server gave.

    `problem` says why the read ended early, and where the server leads clients; else empty.
    """

    found: Mapping[tuple[int, int], bytes]
    earliest: Mapping[int, int]
    problem: str


class CanaryTopics(ABC):
    """Canary topics of one cluster. One thread's; each call ends within its `timeout_ms`."""

    @abstractmethod
    def names(self, timeout_ms: int) -> Sequence[str]:
        """The names of all topics. RetriableError."""

    @abstractmethod
    def create(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        configs: Mapping[str, str],
        timeout_ms: int,
    ) -> None:
        """Create a topic with these replicas by partition, the leader first. RetriableError."""

    @abstractmethod
    def delete(self, name: str, timeout_ms: int) -> None:
        """Delete a topic; nothing happens if it is not there. RetriableError."""

    @abstractmethod
    def write(
        self, address: str | None, topic: str, records: Iterable[CanaryRecord], timeout_ms: int
    ) -> CanaryWritten:
        """Write records at an address, None for the brokers'. Raises nothing."""

    @abstractmethod
    def read(
        self, address: str | None, topic: str, ends: Mapping[int, int], timeout_ms: int
    ) -> CanaryRead:
        """Read each partition from its earliest offset up to its end. Raises nothing."""
