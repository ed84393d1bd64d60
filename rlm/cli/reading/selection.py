"""Represents the records that the command line of `rlm read` selects."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.cli.invocation.log_bounds import Bound, PartitionName
from rsm.segment.batches.aborted import Isolation
from rsm.segment.errors import InvalidConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Represents one or all partitions of a topic, and bounds; None is the bound of the log."""

    name: PartitionName
    begin: Bound | None
    end: Bound | None
    isolation: Isolation

    def __post_init__(self) -> None:
        """Raise InvalidConfigError if the end is before the beginning in every log."""
        if self.begin is not None and self.end is not None and self.end.is_before(self.begin):
            raise InvalidConfigError(
                "no records are selected: --to is before --from",
                begin=self.begin,
                end=self.end,
                advice="Give a later --to, or an earlier --from",
            )
