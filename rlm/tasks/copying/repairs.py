"""Copies damaged segments again, separately from the copies of new segments.

Repairs have their own lanes, pauses and failures. A failed repair delays no other copy and does not
count as an outage of the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from uuid import UUID

from rlm.policy.repair import Repair
from rlm.policy.view import CopyFailure, Damage
from rlm.tasks.copying.copy_lane import CopyLanes
from rlm.tasks.leadership.partition_lead import PartitionLead
from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition

_log = logging.getLogger(__name__)


class Repairs:
    """Runs the repairs of all led partitions. Thread-safe; only one thread may call `offer`."""

    def __init__(
        self, lanes: CopyLanes, *, damage_of: Callable[[TopicIdPartition], Damage]
    ) -> None:
        self._lanes = lanes
        self._damage_of = damage_of

    def damage_of(self, tip: TopicIdPartition) -> Damage:
        return self._damage_of(tip)

    def in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        """Return the id of the segment that is being written for a partition, if any."""
        return self._lanes.in_flight(tip)

    def is_busy(self, tip: TopicIdPartition) -> bool:
        return self._lanes.is_busy(tip)

    def offer(self, lead: PartitionLead, repair: Repair, lineage: Lineage) -> None:
        """Queue a repair, unless one runs or has failed recently."""
        if not repair.segments or self.is_busy(lead.topic_id_partition):
            return
        if self._lanes.offer(lead, repair.segments, lineage, repair.replaces):
            _log.info(
                "copying damaged segments again",
                extra={
                    "topic_partition": lead.topic_id_partition,
                    "start_offset": repair.segments[0].offsets.start_offset,
                    "end_offset": repair.segments[-1].offsets.end_offset,
                    "local_segments": len(repair.segments),
                },
            )

    def failure(self, tip: TopicIdPartition, repair: Repair) -> CopyFailure | None:
        """Return why the last repair attempts failed; None if none failed or none is needed."""
        return self._lanes.failure(tip) if repair.segments else None

    def keep_up(self, led: Collection[TopicIdPartition]) -> None:
        """Write off attempts that hang, and forget failures of partitions no longer led."""
        self._lanes.write_off_overdue()
        self._lanes.keep_only(led)
