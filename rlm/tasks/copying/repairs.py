"""Copies damaged segments again, apart from the copies of new segments.

Repairs have lanes, pauses and failures of their own: one that fails delays no other copy, and does
not count as an outage of the store.
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
    """The repairs of all led partitions. Thread-safe; only one thread may call `offer`."""

    def __init__(
        self, lanes: CopyLanes, *, damage_of: Callable[[TopicIdPartition], Damage]
    ) -> None:
        self._lanes = lanes
        self._damage_of = damage_of

    def damage_of(self, tip: TopicIdPartition) -> Damage:
        """What this manager has found damaged of a partition."""
        return self._damage_of(tip)

    def in_flight(self, tip: TopicIdPartition) -> frozenset[UUID]:
        """The id of the segment being written for a partition, if any."""
        return self._lanes.in_flight(tip)

    def is_busy(self, tip: TopicIdPartition) -> bool:
        """Whether a repair of a partition runs or waits."""
        return self._lanes.is_busy(tip)

    def offer(self, lead: PartitionLead, repair: Repair, lineage: Lineage) -> None:
        """Begin a repair, unless one runs or has just failed."""
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
        """What the last attempts at a repair failed of; None if it is not needed, or none did."""
        return self._lanes.failure(tip) if repair.segments else None

    def keep_up(self, led: Collection[TopicIdPartition]) -> None:
        """Give up attempts that hang, and forget failures of partitions that are led no more."""
        self._lanes.write_off_overdue()
        self._lanes.keep_only(led)
