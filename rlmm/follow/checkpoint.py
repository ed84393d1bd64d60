"""Whether what a cache holds may be continued, or must be rebuilt from the topic. Pure.

A cache is never merged with a topic it was not folded from. One that was not fed for half of the
topic's delete.retention.ms may have missed tombstones and is not continued either; the half leaves
room for a partition that was behind and for clocks that differ.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlmm.positions import ReadPosition, TopicIdentity


def rebuild_reason(
    stored: TopicIdentity | None,
    found: TopicIdentity,
    positions: Mapping[int, ReadPosition],
    end_offsets: Mapping[int, int],
) -> str:
    """Why the cache must be rebuilt, or an empty text. Its age is `is_stale`'s matter."""
    if stored is None:
        return "no checkpoint of this version"
    for name in ("cluster_id", "topic_id", "partition_count"):
        before, now = getattr(stored, name), getattr(found, name)
        if before != now:
            return f"another topic: {name} was {before}, is {now}"
    for partition, position in sorted(positions.items()):
        end_offset = end_offsets.get(partition, 0)
        if position.offset > end_offset:
            return f"partition {partition} ends at {end_offset}, was read up to {position.offset}"
    return ""


def newest_append_time_ms(positions: Mapping[int, ReadPosition]) -> int:
    """When, by the brokers' clocks, the cache was last fed; 0 if never.

    Every process's heartbeat passes through the topic, so one that runs is never long unfed.
    """
    return max((position.append_time_ms for position in positions.values()), default=0)


def is_stale(fed_ms: int, now_ms: int, delete_retention_ms: int) -> bool:
    """Whether a cache last fed at `fed_ms` may have missed tombstones at `now_ms`."""
    return fed_ms > 0 and now_ms - fed_ms > delete_retention_ms // 2
