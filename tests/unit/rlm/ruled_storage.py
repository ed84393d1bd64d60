"""A bucket with lifecycle rules."""

from __future__ import annotations

from rsm.segment.errors import TieredStorageError
from rsm.storage.lifecycle_rules import LifecycleRule
from rsm.storage.memory import MemoryChunkStorage

OURS = LifecycleRule(name="all", effect="deletes objects 30 days after they were written")
FOREIGN = LifecycleRule(name="logs", effect="deletes objects", prefix="logs/")


class RuledStorage(MemoryChunkStorage):
    """A bucket with rules, or one whose rules may not be read while there is a `problem`."""

    def __init__(self, *rules: LifecycleRule, problem: TieredStorageError | None = None) -> None:
        super().__init__(wall_ms=lambda: 0)
        self._rules = rules
        self.problem = problem

    def lifecycle_rules(self) -> tuple[LifecycleRule, ...]:
        if self.problem is not None:
            raise self.problem
        return self._rules
