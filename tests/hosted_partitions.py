"""Finds user partitions of a metadata partition, and builds their events."""

from __future__ import annotations

from dataclasses import replace

from rlmm.events.segment import SegmentEvent
from rlmm.partitioner import metadata_partition
from rsm.segment.ids import TopicIdPartition
from tests.metadata_builder import FINISHED, ORDERS, segment_metadata, step


def user_partitions(number: int, partition_count: int, count: int = 1) -> list[TopicIdPartition]:
    """Return `count` user partitions whose metadata is in this metadata partition."""
    all_of_topic = (replace(ORDERS, partition=each) for each in range(10_000))
    found = (each for each in all_of_topic if metadata_partition(each, partition_count) == number)
    return [next(found) for _ in range(count)]


def stored(partition: TopicIdPartition, number: int = 1) -> SegmentEvent:
    """Return the event that a segment of a partition is stored, offsets 0 to 99."""
    return step(segment_metadata(number, partition=partition), FINISHED)
