"""Moves a partition's log start, clears what lies below it, and forgets what is gone."""

from __future__ import annotations

import logging
from threading import Event

from rlm.policy.leftovers import never_finished
from rlm.policy.plan import AdvanceLogStart, Plan
from rlm.tasks.changed_words import ChangedWords
from rlm.tasks.expirer import Expirer
from rlm.tasks.lanes import Lanes
from rlm.tasks.leadership import Leadership
from rlm.tasks.partition_lead import PartitionLead
from rlm.tasks.ports import Ports
from rlmm.events import LogStartAdvanced, PausableTask
from rsm.segment.errors import TieredStorageError

_log = logging.getLogger(__name__)


class ExpiryLanes:
    """Log starts and deletions of all led partitions, one partition's in order. Thread-safe."""

    def __init__(
        self,
        ports: Ports,
        *,
        lanes: Lanes,
        expirer: Expirer,
        leadership: Leadership,
        stopping: Event,
    ) -> None:
        self._lanes = lanes
        self._expirer = expirer
        self._storage = ports.storage
        self._metadata = ports.metadata
        self._leadership = leadership
        self._new_id = ports.new_id
        self._stopping = stopping
        self._words = ChangedWords()

    def offer(self, lead: PartitionLead, plan: Plan) -> None:
        """Carry out a plan's log start, deletions and forgets unless this partition is busy."""
        if plan.log_start is not None or plan.deletions or plan.forgets:
            self._lanes.offer(lead.topic_id_partition, lambda: self._carry_out(lead, plan))

    def _carry_out(self, lead: PartitionLead, plan: Plan) -> None:
        try:
            if plan.log_start is not None:
                self._advance(lead, plan.log_start)
            self._delete(lead, plan)
            for record in plan.forgets:
                if never_finished(record):  # what its writer wrote after the deletion
                    self._storage.delete_log_segment_data(record.metadata)
                self._metadata.retire(record.metadata.segment_id)
        except TieredStorageError as error:
            tip = lead.topic_id_partition
            if self._words.are_new(tip, error.message):
                _log.warning("expiry given up", extra={"topic_partition": tip, "error": error})
        else:
            self._words.ended(lead.topic_id_partition)

    def _advance(self, lead: PartitionLead, action: AdvanceLogStart) -> None:
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
            _log.info("moved the log start", extra=moved)
        else:
            _log.warning("log start refused", extra={**moved, "refusal": result.refusal})

    def _delete(self, lead: PartitionLead, plan: Plan) -> None:
        """One after the other; a lead that was lost between two ends it."""
        for action in plan.deletions:
            if self._stopping.is_set() or not self._leadership.still_leads(lead):
                return
            if PausableTask.DELETE in self._metadata.paused_tasks(lead.topic_id_partition.topic_id):
                return
            self._expirer.delete(action, lead.writer)
