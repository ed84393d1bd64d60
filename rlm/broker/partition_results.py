"""Represents the results of a request for many partitions, and groups partitions by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResults(Generic[ValueT]):
    """Represents results; each requested partition has either succeeded or failed."""

    succeeded: Mapping[TopicIdPartition, ValueT]
    failed: Mapping[TopicIdPartition, TieredStorageError]


def by_topic(partitions: Iterable[TopicIdPartition]) -> Mapping[str, tuple[TopicIdPartition, ...]]:
    """Group partitions by topic, as Kafka's requests do; keep their order."""
    grouped: dict[str, list[TopicIdPartition]] = {}
    for each in partitions:
        grouped.setdefault(each.topic, []).append(each)
    return {topic: tuple(members) for topic, members in grouped.items()}


def by_name(partitions: Iterable[TopicIdPartition]) -> Mapping[tuple[str, int], TopicIdPartition]:
    """Index partitions by name and number. Raises ValueError if two topic ids share a name."""
    indexed: dict[tuple[str, int], TopicIdPartition] = {}
    for each in partitions:
        if indexed.setdefault((each.topic, each.partition), each) != each:
            raise ValueError(f"cannot index the partitions: {each.topic} has two topic ids")
    return indexed
