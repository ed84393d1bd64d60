"""Finds the topic that a cache follows, and checks whether the cached state may be continued.

Creates the topic only if the cache never followed one: the metadata of a deleted topic is lost, and
processes would take an empty new topic for the true state. Rebuilds a cache of another topic, or of
records that the topic lost, and sets its old data aside.

A cache that received no record for more than half of the topic's delete.retention.ms may have
missed tombstones, so it is rebuilt too. The other half covers lagging partitions and clock skew.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.positions import ReadPosition, TopicIdentity
from rlmm.topic.event_topic import EventTopic
from rsm.segment.errors import NotFoundError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_GONE = "cannot follow the metadata topic: the topic that this state directory followed is gone"
_RESTORE = (
    "Restore the topic. Data loss: to give up the records of all stored segments, stop the "
    "process, rename its metadata cache in state.dir, and start the process"
)
_TOO_OLD = "the checkpoint is too old: the cache may have missed tombstones"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedTopic:
    """Represents a topic and its cache.

    `stored` is the topic that the cache was folded from; None if the cache is new. `positions` is
    the next offset of each cached metadata partition, and `end_offsets` the current end offset of
    each of the topic's partitions. `fed_ms` is when the cache last received a record, by the
    brokers' clocks, or the `confirmed_ms` of `connect` if that is earlier; 0 if never.
    `rebuild_reason` is why the cache may not be continued, else empty. If `should_set_aside`, the
    cache may contain records that the topic does not.
    """

    identity: TopicIdentity
    stored: TopicIdentity | None
    positions: Mapping[int, ReadPosition]
    end_offsets: Mapping[int, int]
    fed_ms: int
    rebuild_reason: str
    should_set_aside: bool


class Continuation:
    """Connects a cache to its topic. For one thread. Raises the errors of both."""

    def __init__(self, topic: EventTopic, cache: MetadataCache, delete_retention_ms: int) -> None:
        self._topic = topic
        self._cache = cache
        self._delete_retention_ms = delete_retention_ms
        self._followed: TopicIdentity | None = None

    def connect(self, now_ms: int, *, lost: str = "", confirmed_ms: int = 0) -> CachedTopic:
        """Find the topic and check whether the cache may be continued; `now_ms` is this host's.

        `lost` is the error that showed the topic's loss of cached records, if any. `confirmed_ms`
        is when this process last knew that the whole topic was applied, by this host's clock; some
        partitions may have received records later. Does not change the cache.
        """
        stored = self._cache.identity()
        self._followed = stored or self._followed
        identity = self.find_topic()
        self._followed = self._followed or identity
        ends = self._topic.end_offsets(range(identity.partition_count))
        positions = self._cache.positions() if stored == identity else {}
        fed_ms = newest_append_time_ms(positions)
        if confirmed_ms:
            fed_ms = min(fed_ms, confirmed_ms)
        reason = rebuild_reason(stored, identity, positions, ends) or lost
        should_set_aside = bool(reason) and stored is not None
        if not reason and self.is_too_old(fed_ms, now_ms):
            reason = _TOO_OLD
        return CachedTopic(
            identity=identity,
            stored=stored,
            positions=positions,
            end_offsets=ends,
            fed_ms=fed_ms,
            rebuild_reason=reason,
            should_set_aside=should_set_aside,
        )

    def start_over(self, found: CachedTopic) -> CachedTopic:
        """Empty the cache for its `rebuild_reason`; return the topic with the empty cache."""
        if found.should_set_aside and found.stored is not None:
            self._set_aside(found.stored)
        logged = found.stored is not None
        self.rebuild(found.identity, found.rebuild_reason, logged=logged)
        self._followed = found.identity
        return replace(found, positions={}, fed_ms=0)

    def find_topic(self) -> TopicIdentity:
        """Check the topic's shape and return the topic; create it if none was followed yet.

        Raises NotFoundError if the followed topic is gone.
        """
        followed = self._followed
        try:
            return self._topic.ensure(create=followed is None)
        except NotFoundError as error:
            if followed is None:
                raise
            raise NotFoundError(_GONE, topic_id=followed.topic_id, advice=_RESTORE) from error

    def is_too_old(self, fed_ms: int, now_ms: int) -> bool:
        """Return whether a cache with no records after `fed_ms` may have missed tombstones."""
        return is_stale(fed_ms, now_ms, self._delete_retention_ms)

    def rebuild(self, identity: TopicIdentity, reason: str, *, logged: bool = True) -> None:
        """Remove the cached data, so that the topic is read from its beginning."""
        self._cache.reset(identity)
        if logged:
            _log.warning(LogLine("rebuilding the metadata cache from the topic", reason=reason))

    def _set_aside(self, stored: TopicIdentity) -> None:
        kept = self._cache.set_aside(stored)
        if kept:
            _log.warning(
                LogLine(
                    "kept the metadata cache of a topic that was replaced or truncated",
                    path=kept,
                    topic_id=stored.topic_id,
                )
            )


def rebuild_reason(
    stored: TopicIdentity | None,
    found: TopicIdentity,
    positions: Mapping[int, ReadPosition],
    end_offsets: Mapping[int, int],
) -> str:
    """Return why the cache must be rebuilt; "" if not. `is_stale` checks the cache's age."""
    if stored is None:
        return "the cache has no checkpoint of this version"
    for name in ("cluster_id", "topic_id", "partition_count"):
        before, now = getattr(stored, name), getattr(found, name)
        if before != now:
            return f"the topic differs: {name} was {before}, is now {now}"
    for partition, position in sorted(positions.items()):
        end_offset = end_offsets.get(partition, 0)
        if position.offset > end_offset:
            return f"partition {partition} was read to {position.offset}, but ends at {end_offset}"
    return ""


def newest_append_time_ms(positions: Mapping[int, ReadPosition]) -> int:
    """Return when the cache last received a record, by the brokers' clocks; 0 if never.

    All heartbeats are records of the topic, so a running process often receives records.
    """
    return max((position.append_time_ms for position in positions.values()), default=0)


def is_stale(fed_ms: int, now_ms: int, delete_retention_ms: int) -> bool:
    """Return whether, at `now_ms`, over half the tombstone retention has passed since `fed_ms`."""
    return fed_ms > 0 and now_ms - fed_ms > delete_retention_ms // 2
