"""Represents the work for one led partition, and all that the manager remembers about it.

    the broker leads in a new epoch → task → claim accepted → cycles, lanes and checks use the task
    → the broker loses the lead, or leads in another epoch → the task is dropped

This is KIP-405's leader task. For a partition that the broker follows, the manager keeps only the
metadata (rlm/tasks/leadership/hosted_partitions.py).

A task does not contain its jobs: the lanes know the queued and running ones, because a running job
outlives the lead until its next check. A job refers to its task, and ends once `leads` is False.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from uuid import UUID

from rlm.broker.errors import PartitionGoneError
from rlm.policy.view import AttemptFailure, Damage
from rlm.status.failures import cause_of
from rlm.tasks.context.log_once import LogOnce
from rlm.tasks.context.retry_pauses import BackOff, Failures, RetryPauses
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlm.tasks.leadership.stream_state import StreamState
from rlmm.positions import MetadataPosition
from rsm.segment.errors import CorruptError, RetriableError, TieredStorageError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.spi import ObjectFault


class UnexpectedError(RetriableError):
    """Represents a bug, or an error of the host; it says nothing about the store."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("cannot finish the attempt: unexpected error", error=repr(error))
        self.__cause__ = error


class CopyHistory:
    """Remembers how the last copies of one lane ended for a partition. Thread-safe.

    The thread of a copy records the result; for a copy that hangs, the cycle's thread does.
    """

    __slots__ = ("_corrupt_failures", "_failure", "_failures", "_lock", "_stopped_at_offset")

    def __init__(self) -> None:
        self._lock = Lock()
        self._failure: AttemptFailure | None = None
        self._failures: Failures | None = None
        self._corrupt_failures: Failures | None = None
        self._stopped_at_offset: int | None = None

    @property
    def failure(self) -> AttemptFailure | None:
        """Return why the last attempts failed; None if the last one succeeded or none has ended."""
        return self._failure

    def allows(self, base_offset: int, now_ms: int) -> bool:
        """Return whether a copy that starts at `base_offset` may start at `now_ms` (monotonic).

        After a failure, copies pause. A segment that can never be stored blocks all copies while
        it is the oldest one to copy.
        """
        with self._lock:
            is_pausing = any(
                each is not None and now_ms < each.not_before_ms
                for each in (self._failures, self._corrupt_failures)
            )
            return not is_pausing and self._stopped_at_offset != base_offset

    def record_failure(
        self, error: TieredStorageError, *, base_offset: int, back_off: BackOff
    ) -> AttemptFailure:
        """Record a failed attempt. Corrupt segments have their own count and back-off."""
        is_corrupt, is_final = isinstance(error, CorruptError), isinstance(error, UnsupportedError)
        with self._lock:
            if is_corrupt:
                self._corrupt_failures = failures = back_off.after(self._corrupt_failures)
            else:
                self._failures = failures = back_off.after(self._failures)
            if is_final:
                self._stopped_at_offset = base_offset
            self._failure = failure = AttemptFailure(
                error=str(error),
                cause=cause_of(error),
                is_corrupt=is_corrupt,
                attempts=failures.count,
                is_final=is_final,
                is_unexpected=isinstance(error, UnexpectedError),
            )
        return failure

    def record_success(self) -> AttemptFailure | None:
        """Forget all failures; return the last one, if any."""
        with self._lock:
            failure, self._failure = self._failure, None
            self._failures = self._corrupt_failures = self._stopped_at_offset = None
        return failure


@dataclass(slots=True, kw_only=True)
class DamageCheck:
    """Represents the damaged segments of a partition, and the whole ones that may replace them.

    `object_checks` contains the pauses between checks of a segment's objects, `reads` the pauses
    between reads of the objects.
    """

    object_checks: RetryPauses
    reads: RetryPauses
    damaged: dict[RemoteLogSegmentId, tuple[ObjectFault, ...]] = field(default_factory=dict)
    whole: set[RemoteLogSegmentId] = field(default_factory=set)


class PartitionTask:
    """Represents one partition that the broker leads in one leader epoch.

        field                           written by
        lead                            nobody
        leads                           Leadership
        log                             every thread (thread-safe)
        suspects_gaps, age_asked_ms     the cycle's thread; no other thread reads them
        copying, repairing, merging     the lanes of copies, repairs and merges
        stream_history                  the lane of streams
        streaming                       the cycle's thread, the watch, the lane of streams and the
                                        store's threads
        given-up attempts               the lanes; the cycle's thread for an attempt that hangs
        proven losses                   the lane of deletions; the cycle's thread takes them
        damage_check                    the thread of the anomaly check; no other thread reads it
        damage                          the same thread; a new value each time
        unsupported                     the lane of merges; a new value each time
        requested deletions             the thread of a command's request

    Every thread may read the fields, except where this table forbids it. A new kind of lane gets
    its own field. Memory for each led partition: 1 kB, one entry per damaged or unsupported
    segment, and one id per segment of a requested deletion.
    """

    __slots__ = (
        "_given_up",
        "_gone_log",
        "_lock",
        "_proven_losses",
        "_requested_deletions",
        "age_asked_ms",
        "copying",
        "damage",
        "damage_check",
        "lead",
        "leads",
        "log",
        "merging",
        "repairing",
        "stream_history",
        "streaming",
        "suspects_gaps",
        "unsupported",
    )

    def __init__(self, lead: PartitionLead, gone_log: LogOnce) -> None:
        """Share `gone_log` with all tasks, for what is logged once per topic."""
        self.lead = lead
        self.leads = False
        """True from the accepted claim until the lead is known to be lost."""
        self.log = LogOnce()
        self.suspects_gaps = False
        self.age_asked_ms: int | None = None
        self.copying = CopyHistory()
        self.repairing = CopyHistory()
        self.merging = CopyHistory()
        self.stream_history = CopyHistory()
        self.streaming = StreamState()
        self.damage = Damage()
        self.damage_check: DamageCheck | None = None
        self.unsupported: Mapping[UUID, AttemptFailure] = {}
        """Stored segments that this process cannot read, and why. No merge includes them."""
        self._gone_log = gone_log
        self._lock = Lock()
        self._given_up: tuple[RemoteLogSegmentId, ...] = ()
        self._proven_losses: frozenset[RemoteLogSegmentId] = frozenset()
        self._requested_deletions: tuple[MetadataPosition | None, frozenset[UUID]] | None = None

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return self.lead.topic_id_partition

    @property
    def leader_epoch(self) -> int:
        return self.lead.writer.leader_epoch

    def give_up(self, segment_id: UUID) -> None:
        """Record an attempt that failed or hangs, but may still finish its segment."""
        given_up = RemoteLogSegmentId(topic_id_partition=self.topic_id_partition, id=segment_id)
        with self._lock:
            self._given_up = (*self._given_up, given_up)

    def given_up(self) -> tuple[RemoteLogSegmentId, ...]:
        """Return the attempts that were given up and are not yet known to be fenced."""
        return self._given_up

    def mark_fenced(self, segment_ids: Collection[RemoteLogSegmentId]) -> None:
        """Record that these attempts can no longer finish, or finished before their fence."""
        with self._lock:
            self._given_up = tuple(each for each in self._given_up if each not in segment_ids)

    def prove_losses(self, segment_ids: Iterable[RemoteLogSegmentId]) -> None:
        """Record that a second check found the objects of these segments damaged."""
        with self._lock:
            self._proven_losses = frozenset(segment_ids)

    def take_proven_losses(self) -> frozenset[RemoteLogSegmentId]:
        """Return the losses that the last expiry plan proved; each proof is returned once."""
        with self._lock:
            taken, self._proven_losses = self._proven_losses, frozenset()
        return taken

    def request_deletions(
        self, segments: frozenset[UUID], policy_position: MetadataPosition | None
    ) -> None:
        """Record an operator's request to delete these segments while this policy applies."""
        self._requested_deletions = (policy_position, segments)

    def requested_deletions(self, policy_position: MetadataPosition | None) -> frozenset[UUID]:
        """Return the segments that an operator wants deleted under this policy.

        A request ends when the policy changes, for example when the topic is streamed again.
        """
        requested = self._requested_deletions
        if requested is None or requested[0] != policy_position:
            return frozenset()
        return requested[1]

    def log_level(self, subject: str, what: str, error: TieredStorageError) -> int:
        """Return WARNING for a new problem of the partition, DEBUG for one already logged.

        If the broker does not have the partition, returns INFO once per topic: the topic was
        deleted, and nobody has to act.
        """
        text = f"{what}: {error.message}"
        if isinstance(error, PartitionGoneError):
            is_new = self._gone_log.changed((self.topic_id_partition.topic_id, what), text)
            return logging.INFO if is_new else logging.DEBUG
        return logging.WARNING if self.log.changed(subject, text) else logging.DEBUG
