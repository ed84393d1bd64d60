"""Claims the partitions that our broker leads.

A leader decides nothing before its own claim has come back through the metadata topic: then it has
seen all that was decided before it. A claim carries the whole lineage, joined from what is stored
and the broker's checkpoint. A claim that another run of our process overtook in the same epoch is
not repeated while that one lives: two processes beside one broker would claim for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from uuid import UUID

from rlm.tasks.changed_words import ChangedWords
from rlm.tasks.partition_lead import PartitionLead
from rlm.tasks.ports import Ports
from rlmm.events import LeadershipClaimed
from rsm.segment.epochs import stitch
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import Writer

_log = logging.getLogger(__name__)


class Leadership:
    """The partitions that this run of the process leads.

    Claims and drops are one thread's, everything else is thread-safe.
    """

    def __init__(self, ports: Ports, *, incarnation: UUID, alone: Callable[[], bool]) -> None:
        """`alone`: whether no other live manager is known beside our broker."""
        self._broker_id = ports.broker.node_id
        self._incarnation = incarnation
        self._alone = alone
        self._metadata = ports.metadata
        self._source = ports.source
        self._new_id = ports.new_id
        self._leads: dict[TopicIdPartition, PartitionLead] = {}
        self._words = ChangedWords()
        self._lock = Lock()

    def keep_only(self, leader_epochs: Mapping[TopicIdPartition, int]) -> tuple[PartitionLead, ...]:
        """Drop the leads that the broker has lost; the claims that are missing, in no order."""
        # The metadata is asked without the lock: copies ask `still_leads` between any two pieces.
        held = {
            lead.topic_id_partition: lead
            for lead in self.leads()
            if leader_epochs.get(lead.topic_id_partition) == lead.writer.leader_epoch
            and not self._abandoned(lead)
        }
        with self._lock:
            self._leads = held
        return tuple(
            PartitionLead(
                topic_id_partition=tip,
                writer=Writer(
                    broker_id=self._broker_id, leader_epoch=epoch, incarnation=self._incarnation
                ),
            )
            for tip, epoch in leader_epochs.items()
            if tip not in held
        )

    def _abandoned(self, lead: PartitionLead) -> bool:
        """Whether our claim was overtaken in its own epoch by a process that is gone by now."""
        owner = self._metadata.partition_state(lead.topic_id_partition).owner
        if owner is None or owner == lead.writer:
            return False
        if owner.leader_epoch != lead.writer.leader_epoch or not self._alone():
            if self._words.are_new(lead.topic_id_partition, f"owned {owner.incarnation}"):
                _log.warning(
                    "another process owns what we lead",
                    extra={"topic_partition": lead.topic_id_partition, "owner": owner.incarnation},
                )
            return False
        return True

    def claim_all(self, leads: Iterable[PartitionLead]) -> None:
        """Claim each; what fails is logged and claimed again in the next cycle."""
        for lead in leads:
            try:
                self.claim(lead)
            except TieredStorageError as error:
                _log.warning(
                    "claim failed",
                    extra={"topic_partition": lead.topic_id_partition, "error": error},
                )

    def claim(self, lead: PartitionLead) -> None:
        """Publish a claim; on return the partition is led, unless the claim was refused."""
        tip = lead.topic_id_partition
        if not self._metadata.caught_up(tip):
            _log.info("claim waits for the metadata topic", extra={"topic_partition": tip})
            return
        stored = self._metadata.partition_state(tip).lineage
        joined = stitch(stored, self._source.local_log(tip).checkpoint)
        contradicted = joined.conflict_offset is not None
        result = self._metadata.publish(
            LeadershipClaimed(
                event_id=self._new_id(),
                topic_id_partition=tip,
                writer=lead.writer,
                # A contradiction must stay visible, so what it contradicts stays on record.
                lineage=stored if contradicted else joined.lineage,
            )
        )
        if not result.accepted:
            _log.warning("claim refused", extra={"topic_partition": tip, "reason": result.refusal})
            return
        with self._lock:
            self._leads[tip] = lead
        _log.info(
            "claimed leadership",
            extra={"topic_partition": tip, "leader_epoch": lead.writer.leader_epoch},
        )

    def leads(self) -> tuple[PartitionLead, ...]:
        """The partitions whose claim has come back, in no order."""
        with self._lock:
            return tuple(self._leads.values())

    def still_leads(self, lead: PartitionLead) -> bool:
        """Whether nothing has been seen yet that ends this lead."""
        with self._lock:
            return self._leads.get(lead.topic_id_partition) == lead
