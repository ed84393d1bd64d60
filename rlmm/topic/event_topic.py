"""EventTopic: the metadata topic, as records of bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rlmm.positions import ReadPosition, TopicIdentity, TopicRecord
from rsm.segment.errors import NotFoundError, RetriableError


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPosition:
    """The position of a written record."""

    partition: int
    offset: int


class PositionLostError(NotFoundError):
    """A partition lost records that were read: it was truncated, and maybe written again."""


class UnknownResultError(RetriableError):
    """A write of unknown result: the record may be in the topic, or be appended later."""


class EventTopic(ABC):
    """One metadata topic. `publish` is thread-safe; one thread reads (`assign`, `poll`)."""

    @abstractmethod
    def ensure(self, *, create: bool) -> TopicIdentity:
        """Check the topic's shape; if it does not exist and `create` is set, create it first.

        Raises NotFoundError if it does not exist and `create` is not set. Raises InvalidConfigError
        with the setting if the shape is wrong (rlmm.topic.shape). Raises RetriableError if the
        cluster does not respond.
        """

    @abstractmethod
    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        """Write one record and return when all in-sync replicas have it.

        Raises UnknownResultError if the result is unknown within the topic's delivery timeout.
        Raises any other RetriableError if the record was not written. Never writes it twice.
        """

    @abstractmethod
    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        """Read exactly these partitions, each from its position."""

    @abstractmethod
    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        """Return the next records of the assigned partitions, in order per partition; may be empty.

        Raises RetriableError if the cluster is unreachable, NotFoundError if the topic is gone.
        Raises PositionLostError if a position does not exist in its partition, or if the leader
        epoch of the record before it shows that other records were read.
        """

    @abstractmethod
    def positions(self) -> Mapping[int, int]:
        """Return each assigned partition's next offset, past compacted and control records."""

    @abstractmethod
    def answered(self) -> Collection[int]:
        """Return the assigned partitions with a record or an end that was read since assignment.

        Such a record or end confirms that the partition contains the position and what was read
        before it.
        """

    @abstractmethod
    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Return the current end of each partition. Thread-safe. Raises RetriableError."""

    @abstractmethod
    def close(self) -> None:
        """Close the client; idempotent. Call no method afterwards."""
