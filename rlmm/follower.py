"""Follower: keeps the cache at the end of the metadata topic, through everything that may happen.

    disconnected ── topic has the right shape, cache continued or rebuilt ──► following
         ▲                                                                     │
         └─ topic unreachable at the start, gone, replaced, cut, of a wrong shape;
                                              cache can't be written ──────────┘

It becomes ready when all that was in the topic at the time of connecting is applied. While the
topic can't be reached later it stays ready, for what it holds is still true; nothing can be
published then. While its cache can't be written it is not ready, for what it holds falls behind.
Who runs it calls `step` in a loop and pauses as the step says.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from rlmm.applier import Applier
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.continuation import Continuation
from rlmm.metrics import MetadataMetrics
from rlmm.positions import TopicIdentity
from rlmm.progress import Progress
from rlmm.spi import Readiness
from rlmm.topic.event_topic import EventTopic
from rsm.segment.clock import Clock
from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
)

logger = logging.getLogger(__name__)

DELETE_RETENTION_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerSettings:
    """Bounds of following: records per step, waits, and how often the topic is looked at anew."""

    max_records_per_step: int = 5000
    poll_timeout_ms: int = 500
    check_interval_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    delete_retention_ms: int = DELETE_RETENTION_MS


class Follower:
    """One thread's, but for `readiness`, `identity` and `metrics`."""

    def __init__(
        self,
        topic: EventTopic,
        cache: MetadataCache,
        progress: Progress,
        clock: Clock,
        settings: FollowerSettings,
    ) -> None:
        self._topic = topic
        self._cache = cache
        self._progress = progress
        self._clock = clock
        self._settings = settings
        self._applier = Applier(topic, cache, progress)
        self._continuation = Continuation(topic, cache, settings.delete_retention_ms)
        self._connected = False
        self._assigned = False
        self._fed_ms = 0
        self._ready_ends: Mapping[int, int] = {}
        self._known_ends: Mapping[int, int] = {}
        self._next_check_ms = 0
        self._failures_in_row = 0
        self._applied_count = 0
        self._counts: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self.identity: TopicIdentity | None = None
        self.readiness = Readiness(ready=False, reason="not connected to the metadata topic yet")

    def step(self) -> int:
        """Connect, or apply the next records. Returns how long to pause before the next, in ms.

        Raises nothing that a later step may get over; failures are counted and logged.
        """
        try:
            if not self._connected:
                self._connect()
            elif self._clock.monotonic_ms() >= self._next_check_ms:
                self._check()
            else:
                self._apply()
        except (InvalidConfigError, NotFoundError, CorruptError) as error:
            self._disconnect(error)
            return self._failed(error)
        except RetriableError as error:
            if reason := self._cache.failure():
                self._lose_cache(reason)
            elif not self._connected:
                self._set_readiness(str(error))
            return self._failed(error)
        # Connecting alone proves little: a full disk lets a cache be opened, and then refuses.
        if self.readiness.ready:
            self._failures_in_row = 0
        return 0

    def metrics(self) -> MetadataMetrics:
        """Counters as of now."""
        positions = self._progress.positions
        return MetadataMetrics(
            ready=self.readiness.ready,
            applied_events_count=self._applied_count,
            refused_events_count=dict(self._refused),
            skipped_events_count=dict(self._skipped),
            rebuilds_count=self._counts["rebuilds"],
            failures_count=self._counts["failures"],
            positions={partition: p.offset for partition, p in positions.items()},
            lag_events_count=self._progress.behind_count(self._known_ends),
        )

    def _connect(self) -> None:
        found = self._continuation.connect(self._clock.wall_ms())
        self._counts["rebuilds"] += found.rebuilt
        self._fed_ms = found.fed_ms
        self._progress.restart(found.positions, found.fed_ms)
        self._assigned = False
        self._ready_ends = self._known_ends = found.end_offsets
        self._next_check_ms = self._clock.monotonic_ms() + self._settings.check_interval_ms
        self.identity = found.identity
        self._connected = True
        self._update_readiness()

    def _check(self) -> None:
        """Look whether the topic is still the same and still of the right shape."""
        self._next_check_ms = self._clock.monotonic_ms() + self._settings.check_interval_ms
        identity = self._continuation.find_topic()
        if identity != self.identity:
            raise NotFoundError("the metadata topic was replaced", was=self.identity, now=identity)
        self._known_ends = self._topic.end_offsets(range(identity.partition_count))

    def _apply(self) -> None:
        # Records that were read but not applied are lost to a topic that is simply read on.
        if not self._assigned:
            self._topic.assign(self._progress.positions)
        self._assigned = False
        counts = self._applier.step(
            max_records=self._settings.max_records_per_step,
            timeout_ms=self._settings.poll_timeout_ms,
        )
        self._assigned = True
        self._applied_count += counts.accepted
        self._refused.update(counts.refused)
        self._skipped.update(counts.skipped)
        if self.readiness.ready:
            return
        # The topic itself may show how much time has passed where this host's clock does not.
        too_old = self._continuation.is_too_old(self._fed_ms, counts.newest_append_time_ms)
        if self.identity and too_old:
            self._continuation.rebuild(self.identity, "records are too far from the checkpoint")
            self._counts["rebuilds"] += 1
            self._connected = False
            return
        self._update_readiness()

    def _update_readiness(self) -> None:
        missing = self._progress.behind_count(self._ready_ends)
        self._set_readiness(f"{missing} metadata events are not applied yet" if missing else "")

    def _disconnect(self, error: TieredStorageError) -> None:
        self._connected = False
        self._set_readiness(str(error))

    def _lose_cache(self, reason: str) -> None:
        """Not ready at once; how far behind the cache is stays known meanwhile."""
        self._connected = False
        self._set_readiness(f"the cache can't be written: {reason}")
        if self.identity is None:
            return
        with suppress(TieredStorageError):
            self._known_ends = self._topic.end_offsets(range(self.identity.partition_count))

    def _set_readiness(self, reason: str) -> None:
        before = self.readiness
        self.readiness = Readiness(ready=not reason, reason=reason)
        if before.ready != self.readiness.ready:
            logger.info("metadata ready=%s reason=%s", self.readiness.ready, reason)
        self._progress.notify()

    def _failed(self, error: TieredStorageError) -> int:
        self._counts["failures"] += 1
        if self._failures_in_row == 0:
            logger.warning("metadata can't be followed, trying again error=%s", error)
        settings = self._settings
        pause_ms = settings.retry_backoff_ms << min(self._failures_in_row, 20)
        self._failures_in_row += 1
        return min(pause_ms, settings.retry_backoff_max_ms)
