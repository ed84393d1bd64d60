"""Runs the copies of each partition, one at a time, and writes off those that hang.

Partitions alternate, segment by segment. An attempt counts as hanging 10 s after its deadline. It
is then written off, so that the next attempt can start under a new id. If the hanging attempt
continues, it finds its deadline passed and deletes what it wrote. Before the next attempt, the
runner fences failed and written-off ones: the metadata then refuses their COPY_SEGMENT_FINISHED.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from threading import Event, Lock
from typing import Protocol
from uuid import UUID

from rlm.metrics.metrics import AttemptCounters, Metrics
from rlm.policy.candidates import COPYING_STATES
from rlm.tasks.context.deletion_start import fence_attempts
from rlm.tasks.context.lanes import Job, Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.context.retry_pauses import BackOff
from rlm.tasks.copying.copy_pace import CopyPace
from rlm.tasks.copying.copy_records import DEFAULT_CUSTOM_METADATA_MAX_BYTES
from rlm.tasks.copying.copy_throttle import CopyThrottle
from rlm.tasks.leadership.partition_task import CopyHistory, PartitionTask, UnexpectedError
from rlmm.events.pause import PausableTask, paused_tasks
from rlmm.events.policy import topic_policy
from rsm.segment.errors import (
    CorruptError,
    FencedError,
    RetriableError,
    StoppedError,
    TieredStorageError,
)
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata

_log = logging.getLogger(__name__)

# After an outage, copying resumes within this time. Shedding needs a recent failed attempt as
# evidence of the outage, so the pauses must be short.
_LONGEST_PAUSE_MS = 60_000

# A corrupt segment stays corrupt, and each attempt reads and stores all bytes before the bad ones.
# A failed merge can cost as much, whatever its error is, and no merge is urgent.
_LONGEST_COSTLY_PAUSE_MS = 3_600_000

# An attempt checks its deadline after each piece. Unless it hangs, it ends this soon afterwards.
_OVERDUE_MS = 10_000


class AttemptKind(Enum):
    """Represents what attempts do; each kind has its own history in the partition's task."""

    COPY = "copy"
    REPAIR = "repair"
    MERGE = "merge"
    STREAM = "stream"

    @property
    def plural(self) -> str:
        """Return the plural that log lines use."""
        return "copies" if self is AttemptKind.COPY else f"{self.value}s"

    @property
    def longest_pause_ms(self) -> int:
        """Return the longest pause after a failure, except after corrupt bytes."""
        return _LONGEST_COSTLY_PAUSE_MS if self is AttemptKind.MERGE else _LONGEST_PAUSE_MS

    def history(self, task: PartitionTask) -> CopyHistory:
        """Return how the last attempts of this kind ended."""
        histories = {
            AttemptKind.COPY: task.copying,
            AttemptKind.REPAIR: task.repairing,
            AttemptKind.MERGE: task.merging,
            AttemptKind.STREAM: task.stream_history,
        }
        return histories[self]

    def counters(self, metrics: Metrics) -> tuple[AttemptCounters, ...]:
        """Return the counters of this kind's attempts; repairs and streams also count as copies."""
        counted = {
            AttemptKind.MERGE: (metrics.merges,),
            AttemptKind.STREAM: (metrics.copies, metrics.streams),
        }
        return counted.get(self, (metrics.copies,))


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptContext:
    """Represents what the attempts of some lanes share: the lanes, the metrics and the limits.

    `attempt_timeout_ms` excludes the delays of `throttle`. If `throttle` is None, there is no rate
    limit. After the first failure of a partition, its attempts pause for `first_pause_ms`.
    """

    lanes: Lanes
    metrics: Metrics
    stopping: Event
    attempt_timeout_ms: int
    first_pause_ms: int
    custom_metadata_max_bytes: int = DEFAULT_CUSTOM_METADATA_MAX_BYTES
    throttle: CopyThrottle | None = None

    def timeout_ms(self, size_bytes: int) -> int:
        """Return the time limit of an attempt of this size, with the delays of the throttle."""
        waits_ms = 0 if self.throttle is None else self.throttle.longest_ms(size_bytes)
        return self.attempt_timeout_ms + waits_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """Represents a running copy: its segment id, its start and its deadline (monotonic)."""

    segment_id: UUID
    started_at_ms: int
    deadline_ms: int


class CopyWork(Protocol):
    """Represents a partition's next segment to copy, and the work after it."""

    @property
    def task(self) -> PartitionTask:
        """Return the task of the partition."""

    @property
    def base_offset(self) -> int:
        """Return the first offset to copy."""

    @property
    def facts(self) -> Mapping[str, object]:
        """Return the log fields that identify the copied records."""

    @property
    def timeout_ms(self) -> int:
        """Return the time limit of one attempt."""

    def copy(self, segment_id: UUID) -> RemoteLogSegmentMetadata:
        """Copy the segment under a new id; return its finished metadata.

        A stream records its result in the task before it returns. Raises the errors of
        `Copier.copy`.
        """

    def give_up(self) -> None:
        """Handle an attempt that ended with FencedError or StoppedError."""

    def following(self) -> CopyWork | None:
        """Return the work to queue after a successful copy; None if there is none."""


@dataclass(slots=True, kw_only=True, eq=False)
class _CopyJob:
    """Represents queued or running work of a partition.

    The runner writes `attempt` under its lock. `attempt` is None while no copy runs, and after the
    copy was written off.
    """

    copy_next: Callable[[_CopyJob], Job | None]
    work: CopyWork
    attempt: _Attempt | None = None

    def __call__(self) -> Job | None:
        return self.copy_next(self)


class AttemptRunner:
    """Runs the attempts of one kind, one at a time per led partition. Thread-safe.

    The runner knows which attempts run. The partition's task records how they ended.
    """

    def __init__(
        self,
        ports: Ports,
        context: AttemptContext,
        *,
        pace: CopyPace | None = None,
        kind: AttemptKind = AttemptKind.COPY,
    ) -> None:
        """Run as many attempts as the lanes allow if `pace` is None."""
        self._ports = ports
        self._kind = kind
        self._metrics = context.metrics
        self._counters = kind.counters(context.metrics)
        self._lanes = context.lanes
        self._pace = pace
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._metadata = ports.metadata
        self._stopping = context.stopping
        pause_ms = context.first_pause_ms
        self._back_off = BackOff(
            ports.clock, first_pause_ms=pause_ms, longest_pause_ms=kind.longest_pause_ms
        )
        self._corrupt_back_off = BackOff(
            ports.clock, first_pause_ms=pause_ms, longest_pause_ms=_LONGEST_COSTLY_PAUSE_MS
        )
        self._hanging: set[UUID] = set()
        self._lock = Lock()

    def in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        """Return the id of the segment that an attempt writes for a partition, if any."""
        job = self._lanes.job(tip)
        attempt = job.attempt if isinstance(job, _CopyJob) else None
        return frozenset() if attempt is None else frozenset({attempt.segment_id})

    def is_busy(self, tip: TopicIdPartition) -> bool:
        """Return whether an attempt of a partition runs or waits for a slot."""
        return self._lanes.is_busy(tip)

    def running_tasks(self) -> Iterator[PartitionTask]:
        """Return the tasks with a running attempt."""
        return (job.work.task for job, _ in self._running())

    def oldest_age_ms(self) -> int:
        """Return the age of the oldest running attempt; 0 if there is none."""
        started = [attempt.started_at_ms for _, attempt in self._running()]
        return self._clock.monotonic_ms() - min(started) if started else 0

    def hanging_count(self) -> int:
        """Return how many written-off attempts still run; each occupies a thread."""
        with self._lock:
            return len(self._hanging)

    def offer(self, work: CopyWork) -> bool:
        """Queue work unless this partition is busy or its history forbids it.

        Returns whether the lane accepted it.
        """
        task = work.task
        if not self._kind.history(task).allows(work.base_offset, self._clock.monotonic_ms()):
            return False
        return self._lanes.offer(
            task.topic_id_partition, _CopyJob(copy_next=self._copy_next, work=work)
        )

    def write_off_overdue(self) -> None:
        """Write off hanging attempts, and evaluate the pace, if any."""
        if self._pace is not None:
            self._pace.evaluate()
        now_ms = self._clock.monotonic_ms()
        for job, attempt in self._running():
            if now_ms > attempt.deadline_ms + _OVERDUE_MS and self._take_from(job, attempt):
                tip = job.work.task.topic_id_partition
                self._metrics.copies_written_off.labels(tip.topic).inc()
                problem = f"cannot finish the {self._kind.value}: it hangs past its deadline"
                hangs = RetriableError(problem, segment_id=attempt.segment_id)
                job.work.task.give_up(attempt.segment_id)
                self._note_failure(job.work, hangs)
                self._lanes.write_off(tip, job)

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

    def _copy_next(self, job: _CopyJob) -> Job | None:
        """Copy the next segment; return the next job if the copy succeeded and work remains."""
        task = job.work.task
        is_due = not self._stopped(task) and self.is_wanted(task.topic_id_partition)
        if not (is_due and self._copy_one(job)):
            return None
        following = job.work.following()
        return None if following is None else replace(job, work=following)

    def _copy_one(self, job: _CopyJob) -> bool:
        work, task = job.work, job.work.task
        tip = task.topic_id_partition
        segment_id = self._new_id()
        for each in self._counters:
            each.requests.labels(tip.topic).inc()
        self._begin(job, segment_id)
        try:
            self._fence_given_up(task)
            finished = work.copy(segment_id)
        except (FencedError, StoppedError) as error:
            what = f"gave up a {self._kind.value}"
            _log.info(LogLine(what, topic_partition=tip, **work.facts, error=error))
            task.give_up(segment_id)
            work.give_up()
            return False
        except TieredStorageError as error:
            self._note_ended(job, segment_id, error)
            return False
        except BaseException as error:
            self._note_ended(job, segment_id, UnexpectedError(error))
            raise
        finally:
            was_written_off = self._end(job, segment_id)
        if not was_written_off:
            self._note_success(task)
        for each in self._counters:
            each.bytes.labels(tip.topic).inc(finished.segment_size_bytes)
        return True

    def _fence_given_up(self, task: PartitionTask) -> None:
        given_up = task.given_up()
        fence_attempts(self._ports, given_up, task.lead.writer)
        task.mark_fenced(given_up)

    def _begin(self, job: _CopyJob, segment_id: UUID) -> None:
        now_ms = self._clock.monotonic_ms()
        attempt = _Attempt(
            segment_id=segment_id,
            started_at_ms=now_ms,
            deadline_ms=now_ms + job.work.timeout_ms,
        )
        with self._lock:
            job.attempt = attempt

    def _end(self, job: _CopyJob, segment_id: UUID) -> bool:
        """End an attempt, and return whether it was written off or has ended before."""
        with self._lock:
            was_over, job.attempt = job.attempt is None, None
            self._hanging.discard(segment_id)
        return was_over

    def _note_ended(self, job: _CopyJob, segment_id: UUID, error: TieredStorageError) -> None:
        """Record a failed attempt, unless it was written off and so already recorded as failed."""
        job.work.task.give_up(segment_id)
        if not self._end(job, segment_id):
            self._note_failure(job.work, error)

    def _note_failure(self, work: CopyWork, error: TieredStorageError) -> None:
        task, tip = work.task, work.task.topic_id_partition
        for each in self._counters:
            each.errors.labels(tip.topic).inc()
        is_corrupt = isinstance(error, CorruptError)
        failure = self._kind.history(task).record_failure(
            error,
            base_offset=work.base_offset,
            back_off=self._corrupt_back_off if is_corrupt else self._back_off,
        )
        what = f"{self._kind.plural} stopped" if failure.is_final else f"{self._kind.value} failed"
        level = task.log_level(self._kind.value, what, error)
        fields = {"topic_partition": tip, **work.facts, "error": error}
        _log.log(level, LogLine(what, **fields, attempts=failure.attempts))

    def _note_success(self, task: PartitionTask) -> None:
        failed = self._kind.history(task).record_success()
        if task.log.clear(self._kind.value) and failed is not None:
            _log.info(
                LogLine(
                    f"{self._kind.plural} succeed again",
                    topic_partition=task.topic_id_partition,
                    attempts=failed.attempts,
                )
            )

    def is_wanted(self, tip: TopicIdPartition) -> bool:
        """Return whether the partition may still be copied; False if the metadata is not known."""
        try:
            policy = topic_policy(self._metadata, tip.topic_id)
            is_paused = PausableTask.COPY in paused_tasks(self._metadata, tip.topic_id)
            is_newer = self._metadata.newer_record(tip) is not None
        except RetriableError:
            return False
        is_tiered = policy is not None and policy.state in COPYING_STATES
        return is_tiered and not is_paused and not is_newer

    def _stopped(self, task: PartitionTask) -> bool:
        return self._stopping.is_set() or not task.leads


class AttemptLanes:
    """Represents lanes of copies, streams or merges for other parts of the manager. Thread-safe."""

    _attempts: AttemptRunner

    def in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        """Return the id of the segment that is being written for a partition, if any."""
        return self._attempts.in_flight(tip)

    def is_busy(self, tip: TopicIdPartition) -> bool:
        """Return whether an attempt of a partition runs or waits for a slot."""
        return self._attempts.is_busy(tip)

    def hanging_count(self) -> int:
        """Return how many written-off attempts still run; each occupies a thread."""
        return self._attempts.hanging_count()

    def write_off_overdue(self) -> None:
        """Write off hanging attempts, and evaluate the pace, if any."""
        self._attempts.write_off_overdue()
