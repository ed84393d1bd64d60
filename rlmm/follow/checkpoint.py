"""Decides whether a cache may be continued or must be rebuilt from the topic. Pure.

A cache is never merged with another topic. A cache that got no record for half of the topic's
delete.retention.ms may have missed tombstones, so it is rebuilt too. The other half covers lagging
partitions and differences between clocks.
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
    """Return why the cache must be rebuilt, or ""; `is_stale` checks its age."""
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
    """Return when, by the brokers' clocks, the cache last got a record; 0 if never.

    All heartbeats are records of the topic, so a running process gets records often.
    """
    return max((position.append_time_ms for position in positions.values()), default=0)


def is_stale(fed_ms: int, now_ms: int, delete_retention_ms: int) -> bool:
    """Return whether a cache last fed at `fed_ms` may miss tombstones at `now_ms`."""
    return fed_ms > 0 and now_ms - fed_ms > delete_retention_ms // 2
