"""Claims the partitions that the manager's broker leads, and keeps a task for each partition.

A manager decides nothing before its own claim has come back through the metadata topic: by then, it
has read all earlier decisions. A claim carries the whole lineage, joined from the stored lineage
and the broker's checkpoint. Another manager of the same broker may claim in the same leader epoch.
While that manager lives, this one does not claim again: otherwise the two would replace each
other's claims endlessly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from threading import Timer
from uuid import UUID

from rlm.tasks.context.log_once import LogOnce
from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.events.claim import LeadershipClaimed
from rsm.segment.epochs import stitch
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import Writer

_log = logging.getLogger(__name__)

_NOTICE_AFTER_MS = 5_000
_NAMED_COUNT = 5
_CLAIM = "claim"


class Leadership:
    """Represents the partitions that the broker leads, and this process's claims of them.

    Only one thread may call `keep_only` and `claim_all`; all else is thread-safe.
    """

    def __init__(
        self,
        ports: Ports,
        *,
        incarnation: UUID,
        alone: Callable[[], bool],
        executor: Executor | None = None,
        notice_after_ms: int = _NOTICE_AFTER_MS,
    ) -> None:
        """Claim with `incarnation` as the id of this run.

        `alone` returns whether no other live manager of the broker is known. `executor` publishes
        claims in parallel; if it is None, they run one after the other. Claims that take longer
        than `notice_after_ms` are logged.
        """
        self._notice_after_ms = notice_after_ms
        self._executor = executor
        self._broker_id = ports.broker.node_id
        self._incarnation = incarnation
        self._alone = alone
        self._metadata = ports.metadata
        self._source = ports.source
        self._new_id = ports.new_id
        self._gone_log = LogOnce()
        self._tasks: dict[TopicIdPartition, PartitionTask] = {}
        """This dict is replaced as a whole, never changed: other threads read it without a lock."""

    def tasks(self) -> tuple[PartitionTask, ...]:
        """Return a task for each partition that the broker leads."""
        return tuple(self._tasks.values())

    def led(self) -> tuple[PartitionTask, ...]:
        """Return the tasks whose claim has come back."""
        return tuple(task for task in self.tasks() if task.leads)

    def led_partitions(self) -> tuple[TopicIdPartition, ...]:
        return tuple(task.topic_id_partition for task in self.led())

    def keep_only(self, leader_epochs: Mapping[TopicIdPartition, int]) -> tuple[PartitionTask, ...]:
        """Drop the tasks of lost leads, begin those of new leads; return the unclaimed tasks."""
        before = self._tasks
        self._tasks = {
            tip: self._task(before.get(tip), tip, epoch) for tip, epoch in leader_epochs.items()
        }
        # The log keeps a topic for one call after its last lead is lost: its jobs may still fail.
        self._gone_log.retain({tip.topic_id for tip in (*before, *leader_epochs)})
        for tip, task in before.items():
            if self._tasks.get(tip) is not task:
                task.leads = False
        return tuple(task for task in self.tasks() if not task.leads)

    def _task(
        self, present: PartitionTask | None, tip: TopicIdPartition, epoch: int
    ) -> PartitionTask:
        """Return the present task if it has this epoch and may continue; else a new task."""
        if (
            present is not None
            and present.leader_epoch == epoch
            and not self._is_abandoned(present)
        ):
            return present
        writer = Writer(
            broker_id=self._broker_id, leader_epoch=epoch, incarnation=self._incarnation
        )
        return PartitionTask(PartitionLead(topic_id_partition=tip, writer=writer), self._gone_log)

    def _is_abandoned(self, task: PartitionTask) -> bool:
        """Return whether another process claimed in the same leader epoch and is now gone."""
        if not task.leads:
            return False
        owner = self._metadata.partition_state(task.topic_id_partition).owner
        if owner is None or owner == task.lead.writer:
            return False
        if owner.leader_epoch != task.leader_epoch or not self._alone():
            rival = owner.incarnation
            _log_changes(logging.WARNING, "another process owns this partition", task, owner=rival)
            return False
        return True

    def claim_all(self, tasks: Iterable[PartitionTask]) -> None:
        """Claim all tasks together; log failures, which the next cycle retries.

        One request finds the partitions whose metadata is read to the end; the others wait.
        """
        wanted = {task.topic_id_partition: task for task in tasks}
        if not wanted:
            return
        with _call_if_late(lambda: self._log_slow(wanted.values()), self._notice_after_ms):
            self._claim_all(wanted)

    def _claim_all(self, wanted: Mapping[TopicIdPartition, PartitionTask]) -> None:
        caught_up = self._metadata.those_caught_up(wanted)
        for tip in wanted.keys() - caught_up:
            _log_changes(logging.INFO, "claim waits for the metadata topic", wanted[tip])
        claims = [partial(self._try_claim, wanted[tip]) for tip in caught_up]
        if self._executor is None:
            for claim in claims:
                claim()
            return
        submitted: list[Future[None]] = []
        try:
            submitted.extend(self._executor.submit(claim) for claim in claims)
        except RuntimeError as error:  # No thread can be started, or the pool is shut down.
            _log.info(LogLine("cannot start claims", error=error))
        for each in submitted:
            with suppress(CancelledError):
                each.exception()

    def _log_slow(self, wanted: Collection[PartitionTask]) -> None:
        waiting = sorted(task.topic_id_partition for task in wanted if not task.leads)
        _log.info(
            LogLine(
                "claims wait for the metadata topic",
                waiting_ms=self._notice_after_ms,
                partitions=len(waiting),
                among_them=[f"{tip.topic}:{tip.partition}" for tip in waiting[:_NAMED_COUNT]],
            )
        )

    def _try_claim(self, task: PartitionTask) -> None:
        # The pool may call this method late, if it could not start a thread at once.
        if task.leads or self._tasks.get(task.topic_id_partition) is not task:
            return
        try:
            self.claim(task)
        except TieredStorageError as error:
            _log_changes(logging.WARNING, "claim failed", task, error=error.message)

    def claim(self, task: PartitionTask) -> None:
        """Publish a claim; on return the task leads the partition, unless the claim was refused.

        Call this only after the partition's metadata is read to the end, so that all earlier
        decisions are known.
        """
        tip = task.topic_id_partition
        stored = self._metadata.partition_state(tip).lineage
        joined = stitch(stored, self._source.local_log(tip).checkpoint)
        contradicted = joined.conflict_offset is not None
        result = self._metadata.publish(
            LeadershipClaimed(
                event_id=self._new_id(),
                topic_id_partition=tip,
                writer=task.lead.writer,
                # The stored lineage stays, so that the contradiction remains visible.
                lineage=stored if contradicted else joined.lineage,
            )
        )
        if not result.accepted:
            what = "the metadata refused the claim"
            _log_changes(logging.WARNING, what, task, reason=result.refusal)
            return
        task.leads = True
        task.log.clear(_CLAIM)
        _log.info(
            LogLine("claimed leadership", topic_partition=tip, leader_epoch=task.leader_epoch)
        )


def _log_changes(level: int, what: str, task: PartitionTask, **fields: object) -> None:
    """Log once, until the state of the partition changes."""
    if task.log.changed(_CLAIM, f"{what} {fields}"):
        _log.log(level, LogLine(what, topic_partition=task.topic_id_partition, **fields))


@contextmanager
def _call_if_late(notice: Callable[[], None], after_ms: int) -> Iterator[None]:
    """Call `notice` once, on a separate thread, if the block takes longer than `after_ms`."""
    timer = Timer(after_ms / 1000, notice)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
