"""Continuation: which topic the cache follows, and whether what it holds may be continued.

The topic is created only for a cache that never followed one: a topic that is gone took what all
processes know with it, and an empty one in its place would be taken for the truth. A cache folded
from another topic, or from records that this one has lost, is rebuilt; what it held is set aside.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.follow.checkpoint import is_stale, newest_append_time_ms, rebuild_reason
from rlmm.positions import ReadPosition, TopicIdentity
from rlmm.topic.event_topic import EventTopic
from rsm.segment.errors import NotFoundError

logger = logging.getLogger(__name__)

_GONE = (
    "the metadata topic that this state directory followed is gone: restore it, or stop the "
    "process and move manager/cache of its state.dir aside to begin again"
)
_TOO_OLD = "the checkpoint is too old: tombstones may have been missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedTopic:
    """A topic and its cache, brought together.

    `stored` is the topic that the cache was folded from, None if it is new. `positions` says for
    each metadata partition that it holds where to read on, `end_offsets` where each one of the
    topic ends as of now. `fed_ms` is when, by the brokers' clocks, the cache was last fed; 0 if
    never. `rebuild_reason`: why it may not be continued, else empty; `sets_aside`: it holds what
    the topic has lost.
    """

    identity: TopicIdentity
    stored: TopicIdentity | None
    positions: Mapping[int, ReadPosition]
    end_offsets: Mapping[int, int]
    fed_ms: int
    rebuild_reason: str
    sets_aside: bool


class Continuation:
    """One thread's. Raises what the topic and the cache raise."""

    def __init__(self, topic: EventTopic, cache: MetadataCache, delete_retention_ms: int) -> None:
        self._topic = topic
        self._cache = cache
        self._delete_retention_ms = delete_retention_ms
        self._followed: TopicIdentity | None = None

    def connect(self, now_ms: int, *, lost: str = "", confirmed_ms: int = 0) -> CachedTopic:
        """Find the topic and look whether the cache may be continued; `now_ms` by this host.

        `lost`: what reading on from its positions came to, if that showed that the topic lost
        records that the cache holds. `confirmed_ms`: when all of the topic was last known to be
        applied, by this host, if this process has seen that: some partitions may have been fed
        later. Nothing that the cache holds is changed.
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
        sets_aside = bool(reason) and stored is not None
        if not reason and self.is_too_old(fed_ms, now_ms):
            reason = _TOO_OLD
        return CachedTopic(
            identity=identity,
            stored=stored,
            positions=positions,
            end_offsets=ends,
            fed_ms=fed_ms,
            rebuild_reason=reason,
            sets_aside=sets_aside,
        )

    def start_over(self, found: CachedTopic) -> CachedTopic:
        """Forget what the cache holds, for its `rebuild_reason`; the connection that follows."""
        if found.sets_aside and found.stored is not None:
            self._set_aside(found.stored)
        logged = found.stored is not None
        self.rebuild(found.identity, found.rebuild_reason, logged=logged)
        self._followed = found.identity
        return replace(found, positions={}, fed_ms=0)

    def find_topic(self) -> TopicIdentity:
        """The topic as it is now, of the right shape. NotFoundError if the one followed is gone."""
        followed = self._followed
        try:
            return self._topic.ensure(create=followed is None)
        except NotFoundError as error:
            if followed is None:
                raise
            raise NotFoundError(_GONE, topic_id=followed.topic_id) from error

    def is_too_old(self, fed_ms: int, now_ms: int) -> bool:
        """Whether a cache last fed at `fed_ms` may have missed tombstones at `now_ms`."""
        return is_stale(fed_ms, now_ms, self._delete_retention_ms)

    def rebuild(self, identity: TopicIdentity, reason: str, *, logged: bool = True) -> None:
        """Forget what the cache holds; it is to be read again from the beginning of this topic."""
        self._cache.reset(identity)
        if logged:
            logger.warning("metadata cache is rebuilt from the topic reason=%s", reason)

    def _set_aside(self, stored: TopicIdentity) -> None:
        kept = self._cache.set_aside(stored)
        if kept:
            logger.warning(
                "metadata cache of a topic that was replaced or cut is kept path=%s topic_id=%s",
                kept,
                stored.topic_id,
            )
