"""Copies the candidates of each partition in order, oldest first, until one fails.

Partitions alternate, segment by segment. An attempt that does not end at its deadline hangs in the
store. It is written off, so that the next attempt can start under a new id. If the first attempt
continues later, it finds its deadline passed and deletes what it wrote.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event, Lock
from uuid import UUID

from rlm.metrics.metrics import Metrics
from rlm.policy.candidates import COPYING_STATES
from rlm.source.log_source import LocalSegment
from rlm.tasks.context.lanes import Job, Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.context.retry_pauses import BackOff
from rlm.tasks.copying.copier import DEFAULT_CUSTOM_METADATA_MAX_BYTES, Copier, CopyOrder
from rlm.tasks.copying.copy_pace import CopyPace
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.leadership.partition_task import CopyHistory, PartitionTask
from rlmm.events.pause import PausableTask
from rsm.segment.epochs import Lineage
from rsm.segment.errors import (
    CorruptError,
    FencedError,
    RetriableError,
    StoppedError,
    TieredStorageError,
)
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

# After an outage, copying resumes within this time. Shedding relies on the last failed attempt,
# which is about this old at most.
_LONGEST_PAUSE_MS = 60_000

# A corrupt segment stays corrupt, and each attempt reads and stores all bytes before the bad ones.
_LONGEST_CORRUPT_PAUSE_MS = 3_600_000

# An attempt that does not hang checks its deadline between any two pieces.
_OVERDUE_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """Represents a running copy: its segment id, its start and its deadline (monotonic)."""

    segment_id: UUID
    started_at_ms: int
    deadline_ms: int


@dataclass(slots=True, kw_only=True, eq=False)
class _CopyJob:
    """Represents the copies that a partition has queued, oldest first.

    `replaces` as in `CopyOrder`. `attempt` is written under the lane's lock. It is None while no
    copy runs, and after the copy was written off.
    """

    copy_next: Callable[[_CopyJob], Job | None]
    task: PartitionTask
    segments: tuple[LocalSegment, ...]
    lineage: Lineage
    replaces: frozenset[UUID]
    attempt: _Attempt | None = None

    def __call__(self) -> Job | None:
        return self.copy_next(self)

    def after_first(self) -> _CopyJob | None:
        """Return the job for the rest, which joins the end of the queue."""
        rest = self.segments[1:]
        return replace(self, segments=rest) if rest else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """Limits one attempt's time, the pause after a first failure, and the custom metadata."""

    attempt_timeout_ms: int
    first_pause_ms: int
    custom_metadata_max_bytes: int = DEFAULT_CUSTOM_METADATA_MAX_BYTES


class CopyLanes:
    """Copies segments of all led partitions, one at a time per partition. Thread-safe.

    The lanes know what runs; how it ended is recorded in the partition's task.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        lanes: Lanes,
        metrics: Metrics,
        stopping: Event,
        limits: CopyLimits,
        throttle: CopyThrottle | None = None,
        pace: CopyPace | None = None,
        repairs: bool = False,
    ) -> None:
        """Copy without a rate limit if `throttle` is None, at the lanes' limit without `pace`.

        With `repairs`, results are the task's `repairing`, else its `copying`.
        """
        self._repairs = repairs
        self._subject = "repair" if repairs else "copy"
        self._lanes = lanes
        self._copier = Copier(
            ports,
            throttle,
            pace=pace,
            custom_metadata_max_bytes=limits.custom_metadata_max_bytes,
        )
        self._pace = pace
        self._throttle = throttle
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._metadata = ports.metadata
        self._metrics = metrics
        self._stopping = stopping
        self._attempt_timeout_ms = limits.attempt_timeout_ms
        self._back_off = BackOff(
            ports.clock,
            first_pause_ms=limits.first_pause_ms,
            longest_pause_ms=_LONGEST_PAUSE_MS,
        )
        self._corrupt_back_off = BackOff(
            ports.clock,
            first_pause_ms=limits.first_pause_ms,
            longest_pause_ms=_LONGEST_CORRUPT_PAUSE_MS,
        )
        self._hanging: set[UUID] = set()
        self._lock = Lock()

    def in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        """Return the id of the segment that is being copied for a partition, if any."""
        job = self._lanes.job(tip)
        attempt = job.attempt if isinstance(job, _CopyJob) else None
        return frozenset() if attempt is None else frozenset({attempt.segment_id})

    def is_busy(self, tip: TopicIdPartition) -> bool:
        """Return whether a partition's segments are being copied or wait for a slot."""
        return self._lanes.is_busy(tip)

    def oldest_age_ms(self) -> int:
        """Return the age of the oldest copy in flight; 0 if there is none."""
        started = [attempt.started_at_ms for _, attempt in self._running()]
        return self._clock.monotonic_ms() - min(started) if started else 0

    def hanging_count(self) -> int:
        """Return how many written-off attempts still run; each occupies a thread."""
        with self._lock:
            return len(self._hanging)

    def offer(
        self,
        task: PartitionTask,
        segments: Sequence[LocalSegment],
        lineage: Lineage,
        replaces: frozenset[UUID] = frozenset(),
    ) -> bool:
        """Queue `segments` in order, unless this partition is busy or its history forbids it.

        Returns whether the lane accepted them. `replaces` as in `CopyOrder`.
        """
        if not segments:
            return False
        base_offset = segments[0].offsets.start_offset
        if not self._history(task).allows(base_offset, self._clock.monotonic_ms()):
            return False
        job = _CopyJob(
            copy_next=self._copy_next,
            task=task,
            segments=tuple(segments),
            lineage=lineage,
            replaces=replaces,
        )
        return self._lanes.offer(task.topic_id_partition, job)

    def write_off_overdue(self) -> None:
        """Write off attempts that run past their deadline, and evaluate the pace."""
        if self._pace is not None:
            self._pace.judge()
        now_ms = self._clock.monotonic_ms()
        for job, attempt in self._running():
            if now_ms > attempt.deadline_ms + _OVERDUE_MS and self._take_from(job, attempt):
                tip = job.task.topic_id_partition
                self._metrics.copies_written_off.labels(tip.topic).inc()
                hangs = RetriableError("copy hangs", segment_id=attempt.segment_id)
                self._note_failure(job.task, hangs)
                self._lanes.write_off(tip)

    def _running(self) -> Iterator[tuple[_CopyJob, _Attempt]]:
        for job in self._lanes.running():
            if isinstance(job, _CopyJob) and (attempt := job.attempt) is not None:
                yield job, attempt

    def _take_from(self, job: _CopyJob, attempt: _Attempt) -> bool:
        """Count a running attempt as hanging; return False if it has just ended."""
        with self._lock:
            if job.attempt is not attempt:
                return False
            job.attempt = None
            self._hanging.add(attempt.segment_id)
        return True

    def _history(self, task: PartitionTask) -> CopyHistory:
        return task.repairing if self._repairs else task.copying

    def _copy_next(self, job: _CopyJob) -> Job | None:
        """Copy the first segment; return the job for the rest if the copy succeeded."""
        if self._stopped(job.task) or not self._wanted(job.task.topic_id_partition):
            return None
        return job.after_first() if self._copy_one(job) else None

    def _copy_one(self, job: _CopyJob) -> bool:
        task, segment = job.task, job.segments[0]
        tip = task.topic_id_partition
        order = CopyOrder(
            lead=task.lead,
            segment_id=self._new_id(),
            segment=segment,
            lineage=job.lineage,
            timeout_ms=self._timeout_ms(segment),
            stopping=self._stopping.is_set,
            leads=lambda: task.leads,
            replaces=job.replaces,
        )
        self._metrics.remote_copy_requests.labels(tip.topic).inc()
        self._begin(job, order)
        try:
            finished = self._copier.copy(order)
        except (FencedError, StoppedError) as error:
            _log.info(LogLine("copy given up", topic_partition=tip, error=error))
            return False
        except TieredStorageError as error:
            if job.attempt is not None:
                self._note_failure(task, error, base_offset=segment.offsets.start_offset)
            return False
        finally:
            was_written_off = job.attempt is None
            self._end(job, order.segment_id)
        if not was_written_off:
            self._note_success(task)
        self._metrics.remote_copy_bytes.labels(tip.topic).inc(finished.segment_size_bytes)
        return True

    def _timeout_ms(self, segment: LocalSegment) -> int:
        """Return an attempt's time limit, without the time that the throttle may delay it."""
        if self._throttle is None:
            return self._attempt_timeout_ms
        waits_ms = self._throttle.longest_ms(segment.size_bytes)
        return self._attempt_timeout_ms + waits_ms

    def _begin(self, job: _CopyJob, order: CopyOrder) -> None:
        now_ms = self._clock.monotonic_ms()
        attempt = _Attempt(
            segment_id=order.segment_id,
            started_at_ms=now_ms,
            deadline_ms=now_ms + order.timeout_ms,
        )
        with self._lock:
            job.attempt = attempt

    def _end(self, job: _CopyJob, segment_id: UUID) -> None:
        with self._lock:
            job.attempt = None
            self._hanging.discard(segment_id)

    def _note_failure(
        self, task: PartitionTask, error: TieredStorageError, base_offset: int | None = None
    ) -> None:
        tip = task.topic_id_partition
        self._metrics.remote_copy_errors.labels(tip.topic).inc()
        is_corrupt = isinstance(error, CorruptError)
        failure = self._history(task).failed(
            error,
            base_offset=base_offset,
            back_off=self._corrupt_back_off if is_corrupt else self._back_off,
        )
        what = "copying stopped" if failure.is_final else "copy failed"
        level = task.log_level(self._subject, what, error)
        fields = {"topic_partition": tip, "base_offset": base_offset, "error": error}
        _log.log(level, LogLine(what, **fields, attempts=failure.attempts))

    def _note_success(self, task: PartitionTask) -> None:
        failed = self._history(task).succeeded()
        if task.log.clear(self._subject) and failed is not None:
            _log.info(
                LogLine(
                    "copies succeed again",
                    topic_partition=task.topic_id_partition,
                    attempts=failed.attempts,
                )
            )

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

    def _stopped(self, task: PartitionTask) -> bool:
        return self._stopping.is_set() or not task.leads
