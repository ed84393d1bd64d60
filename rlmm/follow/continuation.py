"""Continuation: which topic the cache follows, and whether the cached state may be continued.

It creates the topic only for a cache that never followed one. The metadata of a deleted topic is
lost, and processes would take an empty new topic for the true state. A cache of another topic, or
of records that the topic lost, is rebuilt; its old data is set aside.

A cache that got no record for half of the topic's delete.retention.ms may have missed tombstones,
so it is rebuilt too. The other half covers lagging partitions and differences between clocks.
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

_GONE = "the metadata topic that this state directory followed is gone"
_RESTORE = (
    "Restore it. To begin without the records of all stored segments, which are then lost, stop "
    "the process, rename its metadata cache in state.dir, and start it"
)
_TOO_OLD = "the checkpoint is too old: tombstones may have been missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedTopic:
    """A topic and its cache.

    `stored` is the topic that the cache was folded from, None if it is new. `positions` is the next
    offset of each cached metadata partition, `end_offsets` the current end of each one. `fed_ms` is
    when the cache last got a record, by the brokers' clocks; 0 if never. `rebuild_reason` is why
    it may not be continued, else empty. `should_set_aside`: it has records that the topic lacks.
    """

    identity: TopicIdentity
    stored: TopicIdentity | None
    positions: Mapping[int, ReadPosition]
    end_offsets: Mapping[int, int]
    fed_ms: int
    rebuild_reason: str
    should_set_aside: bool


class Continuation:
    """Connects a cache to its topic. For one thread. Raises the errors of topic and cache."""

    def __init__(self, topic: EventTopic, cache: MetadataCache, delete_retention_ms: int) -> None:
        self._topic = topic
        self._cache = cache
        self._delete_retention_ms = delete_retention_ms
        self._followed: TopicIdentity | None = None

    def connect(self, now_ms: int, *, lost: str = "", confirmed_ms: int = 0) -> CachedTopic:
        """Find the topic and check whether the cache may be continued; `now_ms` is this host's.

        `lost`: the error that showed that the topic lost cached records, if any. `confirmed_ms`:
        when, by this host's clock, this process last knew that the whole topic was applied; some
        partitions may have got records later. Does not change the cache.
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
        """Return the topic, after a check of its shape; create it if no topic was followed yet.

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
        """Return whether a cache without records since `fed_ms` may miss tombstones."""
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
    """Return whether a cache without records since `fed_ms` may miss tombstones at `now_ms`."""
    return fed_ms > 0 and now_ms - fed_ms > delete_retention_ms // 2
