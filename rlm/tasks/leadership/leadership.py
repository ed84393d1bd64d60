"""Claims the partitions that the manager's broker leads.

A manager decides nothing before its own claim has come back through the metadata topic: then it has
read all earlier decisions. A claim carries the whole lineage, joined from the stored lineage and
the broker's checkpoint. Another manager of the same broker may claim in the same leader epoch.
While that manager lives, this one does not claim again: the two would overtake each other without
end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, wait
from contextlib import contextmanager
from functools import partial
from threading import Lock, Timer
from uuid import UUID

from rlm.tasks.context.log_once import LogOnce
from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlmm.events.values import LeadershipClaimed
from rsm.segment.epochs import stitch
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import Writer

_log = logging.getLogger(__name__)

_NOTICE_AFTER_MS = 5_000
_NAMED_COUNT = 5


class Leadership:
    """Represents the partitions that this run of the process leads.

    One thread claims and drops; everything else is thread-safe.
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
        claims in parallel; without it they run one after the other. Claims that take longer than
        `notice_after_ms` are logged.
        """
        self._notice_after_ms = notice_after_ms
        self._executor = executor
        self._broker_id = ports.broker.node_id
        self._incarnation = incarnation
        self._alone = alone
        self._metadata = ports.metadata
        self._source = ports.source
        self._new_id = ports.new_id
        self._leads: dict[TopicIdPartition, PartitionLead] = {}
        self._log_once = LogOnce()
        self._lock = Lock()

    def keep_only(self, leader_epochs: Mapping[TopicIdPartition, int]) -> tuple[PartitionLead, ...]:
        """Drop the leads that the broker has lost; return the missing claims in no order."""
        # Read without the lock: copies call `still_leads` between any two pieces.
        led = {
            lead.topic_id_partition: lead
            for lead in self.leads()
            if leader_epochs.get(lead.topic_id_partition) == lead.writer.leader_epoch
            and not self._abandoned(lead)
        }
        with self._lock:
            self._leads = led
        return tuple(
            PartitionLead(
                topic_id_partition=tip,
                writer=Writer(
                    broker_id=self._broker_id, leader_epoch=epoch, incarnation=self._incarnation
                ),
            )
            for tip, epoch in leader_epochs.items()
            if tip not in led
        )

    def _abandoned(self, lead: PartitionLead) -> bool:
        """Return whether a process that is now gone took the claim in the same leader epoch."""
        owner = self._metadata.partition_state(lead.topic_id_partition).owner
        if owner is None or owner == lead.writer:
            return False
        if owner.leader_epoch != lead.writer.leader_epoch or not self._alone():
            tip, rival = lead.topic_id_partition, owner.incarnation
            self._log_changes(
                logging.WARNING, "another process owns what we lead", tip, owner=rival
            )
            return False
        return True

    def claim_all(self, leads: Iterable[PartitionLead]) -> None:
        """Claim all leads together; log failures, which the next cycle claims again.

        One request finds which partitions' metadata is read to the end.
        """
        wanted = {lead.topic_id_partition: lead for lead in leads}
        if not wanted:
            return
        with _call_if_late(lambda: self._log_slow(wanted), self._notice_after_ms):
            self._claim_all(wanted)

    def _claim_all(self, wanted: Mapping[TopicIdPartition, PartitionLead]) -> None:
        caught_up = self._metadata.those_caught_up(wanted)
        for tip in wanted.keys() - caught_up:
            self._log_changes(logging.INFO, "claim waits for the metadata topic", tip)
        claims = [partial(self._try_claim, wanted[tip]) for tip in caught_up]
        if self._executor is None:
            for claim in claims:
                claim()
            return
        try:
            wait([self._executor.submit(claim) for claim in claims])
        except RuntimeError:
            _log.info("no claims any more: the process stops")

    def _log_slow(self, wanted: Mapping[TopicIdPartition, PartitionLead]) -> None:
        with self._lock:
            waiting = sorted(tip for tip, lead in wanted.items() if self._leads.get(tip) != lead)
        _log.info(
            "claims wait for the metadata topic",
            extra={
                "waiting_ms": self._notice_after_ms,
                "partitions": len(waiting),
                "among_them": [f"{tip.topic}:{tip.partition}" for tip in waiting[:_NAMED_COUNT]],
            },
        )

    def _try_claim(self, lead: PartitionLead) -> None:
        try:
            self.claim(lead)
        except TieredStorageError as error:
            tip = lead.topic_id_partition
            self._log_changes(logging.WARNING, "claim failed", tip, error=error.message)

    def claim(self, lead: PartitionLead) -> None:
        """Publish a claim; on return the manager leads the partition, unless the claim was refused.

        The caller has read the partition's metadata to the end, so all earlier decisions are known.
        """
        tip = lead.topic_id_partition
        stored = self._metadata.partition_state(tip).lineage
        joined = stitch(stored, self._source.local_log(tip).checkpoint)
        contradicted = joined.conflict_offset is not None
        result = self._metadata.publish(
            LeadershipClaimed(
                event_id=self._new_id(),
                topic_id_partition=tip,
                writer=lead.writer,
                # Keeps the stored lineage, so that the contradiction stays visible.
                lineage=stored if contradicted else joined.lineage,
            )
        )
        if not result.accepted:
            self._log_changes(logging.WARNING, "claim refused", tip, reason=result.refusal)
            return
        with self._lock:
            self._leads[tip] = lead
        self._log_once.clear(tip)
        _log.info(
            "claimed leadership",
            extra={"topic_partition": tip, "leader_epoch": lead.writer.leader_epoch},
        )

    def _log_changes(self, level: int, what: str, tip: TopicIdPartition, **fields: object) -> None:
        """Log once, until the state of the partition changes."""
        if self._log_once.changed(tip, f"{what} {fields}"):
            _log.log(level, what, extra={"topic_partition": tip, **fields})

    def led_partitions(self) -> tuple[TopicIdPartition, ...]:
        return tuple(lead.topic_id_partition for lead in self.leads())

    def leads(self) -> tuple[PartitionLead, ...]:
        """Return the leads whose claim has come back, in no order."""
        with self._lock:
            return tuple(self._leads.values())

    def still_leads(self, lead: PartitionLead) -> bool:
        """Return whether no known event has ended this lead."""
        with self._lock:
            return self._leads.get(lead.topic_id_partition) == lead


@contextmanager
def _call_if_late(notice: Callable[[], None], after_ms: int) -> Iterator[None]:
    """Call `notice` once on its own thread if the block takes longer than `after_ms`."""
    timer = Timer(after_ms / 1000, notice)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
