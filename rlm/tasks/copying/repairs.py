"""Copies damaged or unwanted segments again, separately from the copies of new segments.

Repairs have their own lanes, pauses and failures. A failed repair delays no other copy and does not
count as an outage of the store.
"""

from __future__ import annotations

import logging
from uuid import UUID

from rlm.policy.repair import Repair
from rlm.tasks.copying.copy_lane import CopyLanes
from rlm.tasks.leadership.partition_task import PartitionTask
from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


class Repairs:
    """Queues the repairs of all led partitions. Thread-safe, but only one thread calls `offer`."""

    def __init__(self, lanes: CopyLanes) -> None:
        self._lanes = lanes

    def in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        """Return the id of the segment that a repair writes for a partition, if any."""
        return self._lanes.in_flight(tip)

    def is_busy(self, tip: TopicIdPartition) -> bool:
        return self._lanes.is_busy(tip)

    def offer(self, task: PartitionTask, repair: Repair, lineage: Lineage) -> None:
        """Queue a repair, unless a repair of the partition runs, waits or has failed recently."""
        tip = task.topic_id_partition
        if not repair.segments or self.is_busy(tip):
            return
        if self._lanes.offer(task, repair.segments, lineage, repair.replaces):
            _log.info(
                LogLine(
                    "copying segments again",
                    topic_partition=tip,
                    rule=repair.reason,
                    start_offset=repair.segments[0].offsets.start_offset,
                    end_offset=repair.segments[-1].offsets.end_offset,
                    local_segments=len(repair.segments),
                )
            )

    def write_off_overdue(self) -> None:
        """Write off hanging repairs."""
        self._lanes.write_off_overdue()
