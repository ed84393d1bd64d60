"""Keeps the cache at the end of the metadata topic, through all failures.

    disconnected ── topic has the right shape, cache continued or rebuilt ──► following
         ▲                                                                     │
         └─ topic unreachable at the start, gone, replaced, truncated, wrong shape;
                                              cache cannot be used ─────────────┘

The follower reads the assigned metadata partitions. It becomes ready once it has applied all
records that they contained when it connected. Partitions that are assigned later catch up one by
one. The follower drops the data of partitions that are no longer assigned.

If the topic becomes unreachable later, the follower stays ready, because its data is still true,
but nothing can be published. After a quarter of delete.retention.ms, it connects again, to check
whether it may have missed tombstones. While the cache cannot be used, the follower is not ready,
because the data lags the topic. If an empty cache replaces a damaged one, queries fail until it is
caught up. Call `step` in a loop, with the pauses that it returns.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from rlmm.cache.metadata_cache import MetadataCache
from rlmm.follow.applier import Applier
from rlmm.follow.assignment import Assignment
from rlmm.follow.continuation import Continuation
from rlmm.follow.followed_partitions import FollowedPartitions
from rlmm.follow.progress import Progress
from rlmm.metrics import MetadataMetrics
from rlmm.positions import ReadPosition, TopicIdentity
from rlmm.spi import Readiness, UnreadyReason
from rlmm.topic.event_topic import EventTopic, PositionLostError
from rsm.segment.clock import Clock
from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    NotFoundError,
    RetriableError,
    TieredStorageError,
)
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

DELETE_RETENTION_MS = 7 * 24 * 3600 * 1000
_START = ReadPosition(offset=0)
_UNCONFIRMED = "the metadata topic has not yet confirmed the records that the cache contains"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerSettings:
    """Represents the limits of one `step`, the wait times, and the interval of topic checks.

    If at least `bulk_events_count` events are missing, the cache is optimized for many writes.
    """

    max_records_per_step: int = 10_000
    poll_timeout_ms: int = 500
    check_interval_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    delete_retention_ms: int = DELETE_RETENTION_MS
    bulk_events_count: int = 200_000


class Follower:
    """Keeps a metadata cache current.

    For one thread; any thread may read `readiness`, `identity`, `caught_up` and `metrics`.
    """

    def __init__(
        self,
        topic: EventTopic,
        cache: MetadataCache,
        progress: Progress,
        clock: Clock,
        settings: FollowerSettings,
        assignment: Assignment,
    ) -> None:
        self._topic = topic
        self._cache = cache
        self._progress = progress
        self._clock = clock
        self._settings = settings
        self._assignment = assignment
        self._followed = FollowedPartitions()
        self._applier = Applier(topic, cache, progress)
        self._continuation = Continuation(topic, cache, settings.delete_retention_ms)
        self._connected = False
        self._assigned = False
        self._has_bulk_mode = False
        self._lost = ""
        self._fed_ms = 0
        self._confirmed_ms = 0
        self._doubted_ms = 0
        self._known_ends: Mapping[int, int] = {}
        self._lagging_at: Mapping[int, int] = {}
        self._next_check_ms = 0
        self._next_change_ms = 0
        self._failures_in_row = 0
        self._applied_count = 0
        self._counts: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self.identity: TopicIdentity | None = None
        self.readiness = Readiness(
            is_ready=False,
            reason="the process has not yet connected to the metadata topic",
            kind=UnreadyReason.UNREACHABLE,
        )

    @property
    def caught_up(self) -> Mapping[int, int]:
        """Return the metadata partitions that answer queries, each with the number of its catch-up.

        A result is complete if that number was the same before and after the query.
        """
        return self._followed.caught_up

    def step(self) -> int:
        """Connect, or apply the next records; return the pause before the next `step`, in ms.

        Counts failures that a later `step` may repair, and does not raise them. Logs the first
        failure in a row.
        """
        try:
            now_ms = self._clock.monotonic_ms()
            if self._connected and (reason := self._cache.failure()):  # A query found the failure.
                self._lose_cache(reason)
            if not self._connected or self._is_in_doubt():
                self._connected = False
                self._connect()
            elif now_ms >= self._next_check_ms:
                self._check()
            elif now_ms >= self._next_change_ms and self._wanted() != self._followed.numbers:
                self._change()
            else:
                self._apply()
        except (InvalidConfigError, NotFoundError, CorruptError) as error:
            self._disconnect(error)
            return self._failed(error)
        except RetriableError as error:
            if reason := self._cache.failure():
                self._lose_cache(reason)
            elif not self._connected:
                self._set_readiness(str(error), UnreadyReason.UNREACHABLE)
            return self._failed(error)
        # Being connected proves little: a cache on a full disk opens, but then rejects writes.
        if self.readiness.is_ready:
            self._failures_in_row = 0
        return 0

    def metrics(self) -> MetadataMetrics:
        """Return the current counters."""
        positions, readiness = self._progress.positions, self.readiness
        return MetadataMetrics(
            is_ready=readiness.is_ready,
            not_ready="" if readiness.kind is None else readiness.kind.value,
            applied_events_count=self._applied_count,
            refused_events_count=dict(self._refused),
            skipped_events_count=dict(self._skipped),
            rebuilds_count=self._counts["rebuilds"],
            failures_count=self._counts["failures"],
            positions={partition: p.offset for partition, p in positions.items()},
            lag_events_count=self._progress.behind_count(self._known_ends),
            missing_events_count=self._progress.behind_count(dict(self._followed.missing_ends)),
            catching_up_count=self._followed.catching_up_count,
        )

    def _connect(self) -> None:
        # An empty cache must answer no query; it may stay empty while the topic is unreachable.
        self._cache.recover(self._followed.forget)
        now_ms = self._clock.wall_ms()
        found = self._continuation.connect(now_ms, lost=self._lost, confirmed_ms=self._confirmed_ms)
        if found.rebuild_reason:
            self._followed.forget()
            found = self._continuation.start_over(found)
            self._counts["rebuilds"] += found.stored is not None
        self._lost = ""
        self._fed_ms = found.fed_ms
        self._progress.restart(found.positions, found.fed_ms)
        self._next_check_ms = self._clock.monotonic_ms() + self._settings.check_interval_ms
        self.identity = found.identity
        self._followed.begin()
        self._follow(found.end_offsets, awaited=True)
        self._connected = True
        self._doubted_ms = now_ms

    def _check(self) -> None:
        """Check the topic's identity and shape, and read its end offsets."""
        self._next_check_ms = self._clock.monotonic_ms() + self._settings.check_interval_ms
        identity = self._continuation.find_topic()
        if identity != self.identity:
            raise NotFoundError("the metadata topic was replaced", was=self.identity, now=identity)
        self._known_ends = self._topic.end_offsets(sorted(self._followed.numbers))
        self._read_again_if_stalled()
        if self.readiness.is_ready and not self._progress.behind_count(self._known_ends):
            self._confirmed_ms = self._clock.wall_ms()

    def _read_again_if_stalled(self) -> None:
        """Assign the partitions again if one lags and delivered nothing since the last check.

        When a partition's leader fails, a client can stop fetching without any error.
        """
        lagging = {
            partition: position.offset
            for partition, position in self._progress.positions.items()
            if position.offset < self._known_ends.get(partition, 0)
        }
        stalled = [p for p, offset in lagging.items() if self._lagging_at.get(p) == offset]
        self._lagging_at = lagging
        if stalled:
            self._assigned = False
            self._counts["failures"] += 1
            _log.warning(
                LogLine(
                    "assigned metadata partitions again: no records arrived since the last check",
                    partitions=stalled,
                )
            )

    def _is_in_doubt(self) -> bool:
        """Return whether it is time to connect again, to check for missed tombstones."""
        if not self._confirmed_ms:
            return False
        since_ms = max(self._confirmed_ms, self._doubted_ms)
        return self._clock.wall_ms() - since_ms > self._settings.delete_retention_ms // 4

    def _change(self) -> None:
        """Follow the wanted partitions; if reading their ends fails, pause before the next try."""
        self._next_change_ms = self._clock.monotonic_ms() + self._settings.retry_backoff_max_ms
        new = self._wanted() - self._followed.numbers
        self._follow(self._topic.end_offsets(sorted(new)) if new else {}, awaited=False)
        self._next_change_ms = 0

    def _wanted(self) -> frozenset[int]:
        assert self.identity is not None, "known since it is connected"
        return self._assignment.wanted(self.identity.partition_count, self._progress.positions)

    def _follow(self, ends: Mapping[int, int], *, awaited: bool) -> None:
        """Follow the wanted partitions and drop the others; new ones catch up to `ends`."""
        cached, wanted, followed = self._progress.positions, self._wanted(), self._followed
        if not wanted - followed.numbers <= ends.keys():
            return  # More partitions were assigned while the ends were read.
        gone = cached.keys() - wanted
        if gone:
            assert self.identity is not None, "known since it is connected"
            followed.forget(gone)
            self._cache.drop(gone, self.identity.partition_count)
        self._progress.restart({p: cached.get(p, _START) for p in wanted}, 0)
        followed.follow(wanted, {p: ends[p] for p in wanted - followed.numbers}, awaited=awaited)
        known = {**self._known_ends, **ends}
        self._known_ends = {p: known[p] for p in wanted}
        self._assigned = False
        _log.info(
            LogLine(
                "changed the followed metadata partitions", followed=len(wanted), dropped=len(gone)
            )
        )
        missing = self._progress.behind_count(followed.missing_ends)
        if missing >= self._settings.bulk_events_count:
            self._set_bulk_mode(enabled=True)
        self._settle()

    def _apply(self) -> None:
        assert self.identity is not None, "known since it is connected"
        # If records were not applied, the client delivers them again only after a new assignment.
        if not self._assigned:
            self._topic.assign(self._progress.positions)
        self._assigned = False
        counts = self._applier.step(
            max_records=self._settings.max_records_per_step,
            timeout_ms=self._settings.poll_timeout_ms,
            partition_count=self.identity.partition_count,
        )
        self._assigned = True
        self._applied_count += counts.accepted
        self._refused.update(counts.refused)
        self._skipped.update(counts.skipped)
        # Timestamps of the topic may show that much time passed even if this host's clock does not.
        too_old = self._continuation.is_too_old(self._fed_ms, counts.newest_append_time_ms)
        if not self.readiness.is_ready and too_old:
            self._followed.forget()
            self._continuation.rebuild(self.identity, "the checkpoint is too old")
            self._counts["rebuilds"] += 1
            self._connected = False
            return
        self._settle()

    def _settle(self) -> None:
        """Update the caught-up partitions and the readiness."""
        answered = self._topic.answered() if self._assigned else frozenset()
        if self._followed.settle(self._progress.positions, answered):
            self._progress.notify()
        if not self._followed.catching_up_count:
            self._set_bulk_mode(enabled=False)
        if not self.readiness.is_ready:
            ends = self._followed.awaited_ends()
            missing = self._progress.behind_count(ends)
            reason = f"unapplied metadata events: {missing}" if missing else _UNCONFIRMED
            self._set_readiness(reason if ends else "", UnreadyReason.CATCHING_UP)
            if not ends:
                self._confirmed_ms = self._clock.wall_ms()

    def _set_bulk_mode(self, *, enabled: bool) -> None:
        """Set bulk mode, even if it was set before: a reopened cache is no longer in bulk mode."""
        if enabled or self._has_bulk_mode:
            self._cache.set_bulk_mode(enabled=enabled)
            self._has_bulk_mode = enabled

    def _disconnect(self, error: TieredStorageError) -> None:
        self._connected = False
        if isinstance(error, PositionLostError):
            self._lost = str(error)
        kind = UnreadyReason.GONE
        if isinstance(error, InvalidConfigError):
            kind = UnreadyReason.WRONG_SHAPE
        elif isinstance(error, CorruptError):
            kind = UnreadyReason.CACHE
        self._set_readiness(str(error), kind)

    def _lose_cache(self, reason: str) -> None:
        """Become not ready, but still read the topic's ends, to measure the cache's lag."""
        self._connected = False
        self._set_readiness(f"the cache cannot be used: {reason}", UnreadyReason.CACHE)
        if self.identity is None:
            return
        with suppress(TieredStorageError):
            self._known_ends = self._topic.end_offsets(sorted(self._followed.numbers))

    def _set_readiness(self, reason: str, kind: UnreadyReason) -> None:
        """Become not ready for `reason`, or ready if `reason` is empty."""
        before = self.readiness
        self.readiness = Readiness(
            is_ready=not reason, reason=reason, kind=kind if reason else None
        )
        if before.is_ready != self.readiness.is_ready:
            _log.info(
                LogLine("metadata readiness changed", ready=self.readiness.is_ready, reason=reason)
            )
        self._progress.notify()

    def _failed(self, error: TieredStorageError) -> int:
        self._counts["failures"] += 1
        if self._failures_in_row == 0:
            _log.warning(LogLine("cannot follow the metadata topic: trying again", error=error))
        settings = self._settings
        pause_ms = settings.retry_backoff_ms << min(self._failures_in_row, 20)
        self._failures_in_row += 1
        return min(pause_ms, settings.retry_backoff_max_ms)
