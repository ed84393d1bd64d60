"""Share groups in memory: there is none until a test sets the start of one."""

from __future__ import annotations

from rlm.broker.groups.share_groups import ShareGroups
from rlm.broker.partition_results import PartitionResults
from rlm.facts.share_group_start import ShareGroupStart
from rsm.segment.errors import TieredStorageError
from rsm.segment.ids import TopicIdPartition


class MemoryShareGroups(ShareGroups):
    """The values that a test sets: where groups start, or the `problem` that every call raises."""

    def __init__(self) -> None:
        self.started: dict[TopicIdPartition, ShareGroupStart] = {}
        self.problem: TieredStorageError | None = None
        self.asked_count = 0

    def starts(self) -> PartitionResults[ShareGroupStart]:
        self.asked_count += 1
        if self.problem is not None:
            raise self.problem
        return PartitionResults(succeeded=dict(self.started), failed={})
