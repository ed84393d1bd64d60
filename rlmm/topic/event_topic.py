"""EventTopic: what the metadata side needs of a partitioned, compacted log. Bytes only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rlmm.positions import ReadPosition, TopicIdentity, TopicRecord
from rsm.segment.errors import NotFoundError, RetriableError


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPosition:
    """Where a record was written."""

    partition: int
    offset: int


class PositionLostError(NotFoundError):
    """A partition does not hold what was read from it: it was cut, or cut and written again."""


class UnknownResultError(RetriableError):
    """It is not known whether a record was written: it may be in the topic, or come in later."""


class EventTopic(ABC):
    """One metadata topic. `publish` is thread-safe; reading (`assign`, `poll`) is one thread's."""

    @abstractmethod
    def ensure(self, *, create: bool) -> TopicIdentity:
        """Check the topic's shape; `create` it first if it is not there.

        Raises NotFoundError if it is not there and is not to be created; InvalidConfigError naming
        the setting where partition count, replication factor, cleanup policy or timestamp type are
        wrong; RetriableError if the cluster cannot be asked.
        """

    @abstractmethod
    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        """Write one record and return when all in-sync replicas have it.

        Raises UnknownResultError if that is not known within the topic's delivery timeout, any
        other RetriableError if the record was not written. Never writes it twice. Thread-safe.
        """

    @abstractmethod
    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        """Read these partitions, each from its position, instead of those read before."""

    @abstractmethod
    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        """Next records of the assigned partitions, each partition's in order; may be empty.

        Raises RetriableError if the cluster cannot be reached; NotFoundError if the topic is gone;
        PositionLostError if a position lies outside what the partition holds, or the record before
        it is not the one that was read (by its leader epoch).
        """

    @abstractmethod
    def positions(self) -> Mapping[int, int]:
        """For each assigned partition, the next offset to read, past gaps and control records."""

    @abstractmethod
    def answered(self) -> Collection[int]:
        """The assigned partitions of which a record, or the end, was seen since they were assigned.

        So their positions are in the partition, and what was read before is what it holds.
        """

    @abstractmethod
    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """The end of each partition as of now. Thread-safe. RetriableError."""

    @abstractmethod
    def close(self) -> None:
        """Leave; idempotent. No call may follow."""
