"""Defines EventTopic: the metadata topic as records with keys and values of bytes."""

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
    """A partition lost records that were read: it was truncated, and may have new ones there."""


class UnknownResultError(RetriableError):
    """The result of a write is unknown: the record may be in the topic, or be appended later."""


class EventTopic(ABC):
    """One metadata topic. `publish` and `end_offsets` are thread-safe; one thread reads."""

    @abstractmethod
    def ensure(self, *, create: bool) -> TopicIdentity:
        """Check the topic's shape; if `create` is true, first create the topic if it is missing.

        Raises NotFoundError if the topic is missing and `create` is false. Raises
        InvalidConfigError, which names the setting, if the shape is wrong (rlmm.topic.shape) or
        cannot be created. Raises RetriableError if the cluster does not respond.
        """

    @abstractmethod
    def publish(self, partition: int, key: bytes, value: bytes | None) -> PublishedPosition:
        """Write one record, and return when all in-sync replicas have it.

        Raises UnknownResultError if the result is still unknown after the delivery timeout. Raises
        another RetriableError if the record was not written. Never writes the record twice.
        """

    @abstractmethod
    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        """Assign these partitions instead of the previous ones; read each from its position."""

    @abstractmethod
    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        """Return the next records of the assigned partitions, or none after `timeout_ms`.

        The records of each partition are in order. Raises RetriableError if the cluster is
        unreachable, NotFoundError if the topic is gone. Raises PositionLostError if a partition
        does not contain its position, or if the leader epoch of the record before the position
        shows that the partition no longer contains the records read earlier.
        """

    @abstractmethod
    def positions(self) -> Mapping[int, int]:
        """Return each assigned partition's next offset; it skips compacted and control records."""

    @abstractmethod
    def answered(self) -> Collection[int]:
        """Return the partitions of which a record or the end was read since their assignment.

        This confirms that the partition contains the position and the records read before it.
        """

    @abstractmethod
    def end_offsets(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Return each partition's end offset. Raises RetriableError if a leader does not answer."""

    @abstractmethod
    def close(self) -> None:
        """Close the client; idempotent. Call no other method afterwards."""
