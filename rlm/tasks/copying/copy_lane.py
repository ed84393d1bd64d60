"""Copies the candidates of each partition in order, oldest first, until one fails.

Partitions alternate, segment by segment. An attempt that does not end at its deadline hangs in the
store. It is written off, so that the next attempt can start under a new id. If the first attempt
continues later, it finds its deadline passed and deletes what it wrote.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock
from uuid import UUID

from rlm.metrics.metrics import Metrics
from rlm.policy.candidates import COPYING_STATES
from rlm.policy.view import CopyFailure
from rlm.source.log_source import LocalSegment
from rlm.status.failing_copies import cause_of
from rlm.tasks.context.lanes import Job, Lanes
from rlm.tasks.context.log_once import LogOnce, log_level
from rlm.tasks.context.ports import Ports
from rlm.tasks.context.retry_pauses import RetryPauses
from rlm.tasks.copying.copier import DEFAULT_CUSTOM_METADATA_MAX_BYTES, Copier, CopyOrder
from rlm.tasks.copying.copy_pace import CopyPace
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.leadership.leadership import Leadership
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlmm.events.values import PausableTask
from rsm.segment.epochs import Lineage
from rsm.segment.errors import (
    CorruptError,
    FencedError,
    RetriableError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.ids import TopicIdPartition

_log = logging.getLogger(__name__)

# After an outage, copying resumes within this time. Shedding relies on the last failed attempt,
# which is about this old at most.
_LONGEST_PAUSE_MS = 60_000

# A corrupt segment stays corrupt, and each attempt reads and stores all bytes before the bad ones.
_LONGEST_CORRUPT_PAUSE_MS = 3_600_000

# An attempt that does not hang checks its deadline between any two pieces.
_OVERDUE_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """Represents a running copy: its segment id, its start and its deadline (monotonic)."""

    segment_id: UUID
    started_at_ms: int
    deadline_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _CopyWork:
    """Represents the lead and lineage of a partition's copies, and the segments to replace."""

    lead: PartitionLead
    lineage: Lineage
    replaces: frozenset[UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """Limits one attempt's time, the pause after a first failure, and the custom metadata."""

    attempt_timeout_ms: int
    first_pause_ms: int
    custom_metadata_max_bytes: int = DEFAULT_CUSTOM_METADATA_MAX_BYTES


class CopyLanes:
    """Copies segments of all led partitions, one at a time per partition. Thread-safe."""

    def __init__(
        self,
        ports: Ports,
        *,
        lanes: Lanes,
        leadership: Leadership,
        metrics: Metrics,
        stopping: Event,
        limits: CopyLimits,
        throttle: CopyThrottle | None = None,
        pace: CopyPace | None = None,
    ) -> None:
        """Copy without a rate limit if `throttle` is None, at the lanes' limit without `pace`."""
        self._lanes = lanes
        self._copier = Copier(
            ports,
            throttle,
            pace=pace,
            custom_metadata_max_bytes=limits.custom_metadata_max_bytes,
        )
        self._pace = pace
        self._throttle = throttle
        self._leadership = leadership
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._metadata = ports.metadata
        self._metrics = metrics
        self._stopping = stopping
        self._attempt_timeout_ms = limits.attempt_timeout_ms
        self._pauses = RetryPauses(
            ports.clock,
            first_pause_ms=limits.first_pause_ms,
            longest_pause_ms=_LONGEST_PAUSE_MS,
        )
        self._corrupt_pauses = RetryPauses(
            ports.clock,
            first_pause_ms=limits.first_pause_ms,
            longest_pause_ms=_LONGEST_CORRUPT_PAUSE_MS,
        )
        self._log_once = LogOnce()
        self._in_flight: dict[TopicIdPartition, InFlight] = {}
        self._hanging: set[UUID] = set()
        self._failed: dict[TopicIdPartition, CopyFailure] = {}
        self._stopped_at: dict[TopicIdPartition, int] = {}
        self._lock = Lock()

    def in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        """Return the id of the segment that is being copied for a partition, if any."""
        with self._lock:
            current = self._in_flight.get(tip)
        return frozenset() if current is None else frozenset({current.segment_id})

    def is_busy(self, tip: TopicIdPartition) -> bool:
        """Return whether a partition's segments are being copied or wait for a slot."""
        return self._lanes.is_busy(tip)

    def failure(self, tip: TopicIdPartition) -> CopyFailure | None:
        """Return why the last attempts for a partition failed; None if the last one succeeded."""
        with self._lock:
            return self._failed.get(tip)

    def oldest_age_ms(self) -> int:
        """Return the age of the oldest copy in flight; 0 if there is none."""
        with self._lock:
            started = [flight.started_at_ms for flight in self._in_flight.values()]
        return self._clock.monotonic_ms() - min(started) if started else 0

    def hanging_count(self) -> int:
        """Return how many written-off attempts still run; each occupies a thread."""
        with self._lock:
            return len(self._hanging)

    def offer(
        self,
        lead: PartitionLead,
        segments: Sequence[LocalSegment],
        lineage: Lineage,
        replaces: frozenset[UUID] = frozenset(),
    ) -> bool:
        """Queue `segments` in order, unless this partition is busy or pauses after a failure.

        Returns whether the lane accepted them. A segment that cannot be stored stops its partition
        while it is the oldest candidate and the manager leads. `replaces` as in `CopyOrder`.
        """
        tip = lead.topic_id_partition
        if not segments or self._pauses.pausing(tip) or self._corrupt_pauses.pausing(tip):
            return False
        with self._lock:
            stopped = self._stopped_at.get(tip) == segments[0].offsets.start_offset
        if stopped:
            return False
        work = _CopyWork(lead=lead, lineage=lineage, replaces=replaces)
        return self._lanes.offer(tip, partial(self._copy_next, work, tuple(segments)))

    def keep_only(self, led: Collection[TopicIdPartition]) -> None:
        """Forget the failures of partitions that the broker no longer leads."""
        with self._lock:
            gone = [tip for tip in self._failed if tip not in led]
            for tip in gone:
                del self._failed[tip]
                self._stopped_at.pop(tip, None)
        for tip in gone:
            self._pauses.ended(tip)
            self._corrupt_pauses.ended(tip)
            self._log_once.clear(tip)

    def write_off_overdue(self) -> None:
        """Write off attempts that run past their deadline, and evaluate the pace."""
        if self._pace is not None:
            self._pace.judge()
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            overdue = {
                tip: flight
                for tip, flight in self._in_flight.items()
                if now_ms > flight.deadline_ms + _OVERDUE_MS
            }
            for tip, flight in overdue.items():
                del self._in_flight[tip]
                self._hanging.add(flight.segment_id)
        for tip, flight in overdue.items():
            self._metrics.copies_written_off.labels(tip.topic).inc()
            self._note_failure(tip, RetriableError("copy hangs", segment_id=flight.segment_id))
            self._lanes.write_off(tip)

    def _copy_next(self, work: _CopyWork, segments: tuple[LocalSegment, ...]) -> Job | None:
        """Copy the first segment; return the job for the rest if the copy succeeded."""
        if self._stopped(work.lead) or not self._wanted(work.lead.topic_id_partition):
            return None
        if not self._copy_one(work, segments[0]):
            return None
        rest = segments[1:]
        return partial(self._copy_next, work, rest) if rest else None

    def _copy_one(self, work: _CopyWork, segment: LocalSegment) -> bool:
        lead = work.lead
        tip = lead.topic_id_partition
        order = CopyOrder(
            lead=lead,
            segment_id=self._new_id(),
            segment=segment,
            lineage=work.lineage,
            timeout_ms=self._timeout_ms(segment),
            stopped=lambda: self._stopped(lead),
            replaces=work.replaces,
        )
        self._metrics.remote_copy_requests.labels(tip.topic).inc()
        self._begin(tip, order)
        try:
            finished = self._copier.copy(order)
        except FencedError as error:
            _log.info("copy given up", extra={"topic_partition": tip, "error": error})
            return False
        except TieredStorageError as error:
            if self._is_current(tip, order.segment_id):
                self._note_failure(tip, error, base_offset=segment.offsets.start_offset)
            return False
        finally:
            is_current = self._is_current(tip, order.segment_id)
            self._end(tip, order.segment_id)
        if is_current:
            self._note_success(tip)
        self._metrics.remote_copy_bytes.labels(tip.topic).inc(finished.segment_size_bytes)
        return True

    def _timeout_ms(self, segment: LocalSegment) -> int:
        """Return an attempt's time limit, without the time that the throttle may delay it."""
        if self._throttle is None:
            return self._attempt_timeout_ms
        waits_ms = self._throttle.longest_ms(segment.size_bytes)
        return self._attempt_timeout_ms + waits_ms

    def _begin(self, tip: TopicIdPartition, order: CopyOrder) -> None:
        now_ms = self._clock.monotonic_ms()
        flight = InFlight(
            segment_id=order.segment_id,
            started_at_ms=now_ms,
            deadline_ms=now_ms + order.timeout_ms,
        )
        with self._lock:
            self._in_flight[tip] = flight

    def _is_current(self, tip: TopicIdPartition, segment_id: UUID) -> bool:
        with self._lock:
            current = self._in_flight.get(tip)
        return current is not None and current.segment_id == segment_id

    def _end(self, tip: TopicIdPartition, segment_id: UUID) -> None:
        """End a copy, unless it was written off and another one is in flight."""
        with self._lock:
            self._hanging.discard(segment_id)
            current = self._in_flight.get(tip)
            if current is not None and current.segment_id == segment_id:
                del self._in_flight[tip]

    def _note_failure(
        self, tip: TopicIdPartition, error: TieredStorageError, base_offset: int | None = None
    ) -> None:
        self._metrics.remote_copy_errors.labels(tip.topic).inc()
        corrupt, final = isinstance(error, CorruptError), isinstance(error, UnsupportedError)
        pauses = self._corrupt_pauses if corrupt else self._pauses
        attempts = pauses.failed(tip).count
        failure = CopyFailure(
            error=str(error),
            cause=cause_of(error),
            corrupt=corrupt,
            attempts=attempts,
            final=final,
        )
        with self._lock:
            self._failed[tip] = failure
            if final and base_offset is not None:
                self._stopped_at[tip] = base_offset
        what = "copying stopped" if final else "copy failed"
        level = log_level(self._log_once, tip, what, error)
        fields = {"topic_partition": tip, "base_offset": base_offset, "error": error}
        _log.log(level, what, extra={**fields, "attempts": attempts})

    def _note_success(self, tip: TopicIdPartition) -> None:
        self._pauses.ended(tip)
        self._corrupt_pauses.ended(tip)
        with self._lock:
            failed = self._failed.pop(tip, None)
            self._stopped_at.pop(tip, None)
        if self._log_once.clear(tip) and failed is not None:
            fields = {"topic_partition": tip, "attempts": failed.attempts}
            _log.info("copies succeed again", extra=fields)

    def _wanted(self, tip: TopicIdPartition) -> bool:
        """Return whether the topic is still to be copied; False if the metadata cannot answer."""
        try:
            policy = self._metadata.topic_policy(tip.topic_id)
            is_paused = PausableTask.COPY in self._metadata.paused_tasks(tip.topic_id)
            is_newer = self._metadata.newer_record(tip) is not None
        except RetriableError:
            return False
        is_tiered = policy is not None and policy.state in COPYING_STATES
        return is_tiered and not is_paused and not is_newer

    def _stopped(self, lead: PartitionLead) -> bool:
        return self._stopping.is_set() or not self._leadership.still_leads(lead)
