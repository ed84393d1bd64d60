"""Moves a partition's log start, proves its losses, and deletes and purges its segments.

A plan may wait for a slot, and a store may be slow. So before each action, the lane checks that the
topic's policy and pauses are still those of the plan. Before it moves the log start because of
retention, it also checks the read leases. After a failed check, it drops the rest of the plan, and
the next cycle plans again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Event

from rlm.policy.leftovers import has_never_finished
from rlm.policy.plan import AdvanceLogStart, Plan
from rlm.policy.read_leases import log_start_within_leases
from rlm.policy.view import PartitionView
from rlm.tasks.context.lanes import Lanes
from rlm.tasks.context.ports import Ports
from rlm.tasks.context.retry_pauses import RetryPauses
from rlm.tasks.deleting.expirer import Expirer
from rlm.tasks.integrity.damage_proof import DamageProof
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.events.log_start import LogStartAdvanced
from rlmm.events.pause import PausableTask, paused_tasks
from rlmm.events.policy import TopicPolicy, topic_policy
from rlmm.spi import SegmentRecord
from rsm.segment.errors import (
    FencedError,
    RetriableError,
    StoppedError,
    TieredStorageError,
    UnsupportedError,
)
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import RemoteLogSegmentMetadata

_log = logging.getLogger(__name__)

# These pauses are long: a check before the deletion of a damaged segment may read all of it.
_FIRST_PROOF_PAUSE_MS = 60_000
_LONGEST_PROOF_PAUSE_MS = 3_600_000

_EXPIRY = "expiry"
_LEFTOVERS = "leftovers"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExpiryJob:
    """Represents a partition's plan, with the policy and the pauses for which it was made."""

    carry_out: Callable[[_ExpiryJob], None]
    task: PartitionTask
    plan: Plan
    policy: TopicPolicy
    paused: frozenset[PausableTask]

    def __call__(self) -> None:
        self.carry_out(self)


class ExpiryLanes:
    """Moves log starts and deletes segments, in order for each partition. Thread-safe."""

    def __init__(
        self,
        ports: Ports,
        *,
        lanes: Lanes,
        expirer: Expirer,
        stopping: Event,
        proof: DamageProof | None = None,
    ) -> None:
        """Create a DamageProof if `proof` is None."""
        self._lanes = lanes
        self._proof = proof or DamageProof(ports, stopping)
        self._expirer = expirer
        self._storage = ports.storage
        self._metadata = ports.metadata
        self._new_id = ports.new_id
        self._stopping = stopping
        self._proof_pauses = RetryPauses(
            ports.clock,
            first_pause_ms=_FIRST_PROOF_PAUSE_MS,
            longest_pause_ms=_LONGEST_PROOF_PAUSE_MS,
        )

    def offer(self, task: PartitionTask, view: PartitionView, plan: Plan) -> None:
        """Queue a plan's log start, losses, deletions and purges, unless this partition is busy.

        `view` is the view from which the plan was made.
        """
        if plan.log_start or plan.losses or plan.deletions or plan.purges:
            job = _ExpiryJob(
                carry_out=self._carry_out,
                task=task,
                plan=plan,
                policy=view.policy,
                paused=view.paused,
            )
            self._lanes.offer(task.topic_id_partition, job)

    def policy_under_way(self, tip: TopicIdPartition) -> TopicPolicy | None:
        """Return the policy of the plan that runs or waits for a partition; None if none does."""
        job = self._lanes.job(tip)
        return job.policy if isinstance(job, _ExpiryJob) else None

    def _carry_out(self, job: _ExpiryJob) -> None:
        task, plan = job.task, job.plan
        tip = task.topic_id_partition
        self._proof_pauses.forget_stale()
        try:
            if plan.log_start is not None:
                self._require_unchanged(job)
                self._advance(task.lead, plan.log_start)
            self._prove_losses(job)
            for action in plan.deletions:
                self._require_unchanged(job)
                if self._is_proven(action.record.metadata, partial(self._proof.require, action)):
                    self._expirer.delete(action, task.lead.writer)
            for record in plan.purges:
                self._require_unchanged(job)
                self._purge(task, record)
        except (FencedError, StoppedError) as error:
            # The lead, the policy, a pause or a read lease has changed, or the process stops.
            _log.info(LogLine("stopped an expiry plan", topic_partition=tip, error=error))
        except TieredStorageError as error:
            if task.log.changed(_EXPIRY, error.message):
                _log.warning(
                    LogLine(
                        "cannot finish an expiry plan: the next cycle plans it again",
                        topic_partition=tip,
                        error=error,
                    )
                )
        else:
            task.log.clear(_EXPIRY)

    def _prove_losses(self, job: _ExpiryJob) -> None:
        """Check lost segments again; the next cycle records the gaps."""
        proven = set()
        for loss in job.plan.losses:
            self._require_unchanged(job)
            metadata = loss.record.metadata
            if self._is_proven(metadata, partial(self._proof.require_damaged, metadata)):
                proven.add(metadata.segment_id)
        if proven:
            job.task.prove_losses(proven)

    def _is_proven(self, metadata: RemoteLogSegmentMetadata, require: Callable[[], None]) -> bool:
        """Return whether `require` allows the action; a failed check delays only this segment."""
        segment_id = metadata.segment_id
        if self._proof_pauses.is_pausing(segment_id):
            return False
        try:
            require()
        except (FencedError, RetriableError, StoppedError, UnsupportedError) as error:
            attempts = self._proof_pauses.record_failure(segment_id).count
            if attempts == 1:
                what = "postponed deleting or giving up a segment"
                _log.info(LogLine(what, segment_id=segment_id, error=error))
            return False
        self._proof_pauses.clear(segment_id)
        return True

    def _purge(self, task: PartitionTask, record: SegmentRecord) -> None:
        """Remove a segment's records; keep them if the store cannot delete the copy's leftovers."""
        segment_id = record.metadata.segment_id
        if has_never_finished(record):  # Its writer may have written objects after the deletion.
            try:
                self._storage.delete_log_segment_data(record.metadata)
            except RetriableError as error:
                if task.log.changed(_LEFTOVERS, error.message):
                    _log.warning(
                        LogLine(
                            "cannot delete the leftovers of a copy",
                            segment_id=segment_id,
                            error=error,
                        )
                    )
                return
        self._metadata.write_tombstones(segment_id)

    def _require_unchanged(self, job: _ExpiryJob) -> None:
        """Raise FencedError if the lead is lost.

        Raises StoppedError if the process stops, or if the topic's policy or pauses have changed.
        """
        topic_id = job.policy.topic_id
        if self._stopping.is_set():
            raise StoppedError("cannot finish the expiry plan: the process stops")
        if not job.task.leads:
            raise FencedError(
                "cannot finish the expiry plan: the process no longer leads the partition"
            )
        if topic_policy(self._metadata, topic_id) != job.policy:
            raise StoppedError("cannot finish the expiry plan: the topic's policy has changed")
        if paused_tasks(self._metadata, topic_id) != job.paused:
            raise StoppedError("cannot finish the expiry plan: the topic's pauses have changed")

    def _require_not_leased(self, tip: TopicIdPartition, offset: int) -> None:
        """Raise StoppedError if a lease that was taken after the plan blocks this log start."""
        now_ms = self._metadata.broker_time_ms()  # Leases that are read later are newer.
        state = self._metadata.partition_state(tip)
        leases = state.active_leases(now_ms)
        current = state.log_start_offset or 0
        allowed, lease = log_start_within_leases(leases, current, offset)
        if allowed < offset:
            raise StoppedError("cannot expire the records: they are leased", lease=lease)

    def _advance(self, lead: PartitionLead, action: AdvanceLogStart) -> None:
        if action.is_expiry:
            self._require_not_leased(lead.topic_id_partition, action.offset)
        result = self._metadata.publish(
            LogStartAdvanced(
                event_id=self._new_id(),
                topic_id_partition=lead.topic_id_partition,
                writer=lead.writer,
                offset=action.offset,
                reason=action.reason,
            )
        )
        moved = {
            "topic_partition": lead.topic_id_partition,
            "offset": action.offset,
            "rule": action.reason,
        }
        if result.accepted:
            _log.info(LogLine("moved the log start", **moved))
        else:
            what = "cannot move the log start: the metadata refuses it"
            _log.warning(LogLine(what, **moved, refusal=result.refusal))
