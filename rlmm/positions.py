"""Which metadata topic was read, and how far: what the topic and the cache both speak of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPosition:
    """The next offset to read, and leader epoch and broker time of the record read before it.

    -1 and 0 where none was. The epoch lets the broker tell a log that was cut and grew again.
    """

    offset: int
    leader_epoch: int = -1
    append_time_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdentity:
    """Which topic of which cluster: a checkpoint of another one must never be merged."""

    cluster_id: str
    topic_id: str
    partition_count: int
