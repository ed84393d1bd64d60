"""A bucket with lifecycle rules."""

from __future__ import annotations

from rsm.segment.errors import TieredStorageError
from rsm.storage.expiry_rules import ExpiryRule
from rsm.storage.memory import MemoryChunkStorage

OURS = ExpiryRule(name="all", effect="deletes objects 30 days after they were written")
FOREIGN = ExpiryRule(name="logs", effect="deletes objects", prefix="logs/")


class RuledStorage(MemoryChunkStorage):
    """A bucket with rules, or one whose rules may not be read while there is a `problem`."""

    def __init__(self, *rules: ExpiryRule, problem: TieredStorageError | None = None) -> None:
        super().__init__(wall_ms=lambda: 0)
        self._rules = rules
        self.problem = problem

    def expiry_rules(self) -> tuple[ExpiryRule, ...]:
        if self.problem is not None:
            raise self.problem
        return self._rules
