"""Log starts of a partition, decided by its owners or requested by clients. Pure.

Each is valid within the leader epoch that it was decided in. If a later epoch begins below it, an
unclean election has cut off the log that it was decided for, and the records from there on are new.

The decisions are kept unchanged and applied to a lineage on each query, because a second election
may restore the history that the first one cut off. One start covers another if its offset and its
epoch are equal or higher. Then it reaches at least as far in every lineage. So the covered one can
be removed at any time, by compaction too.

Records that a deposed leader appended in an earlier epoch may become live through an unclean
election. A log start cannot distinguish them from those that it was decided for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rsm.segment.epochs import Lineage


class LogStart(NamedTuple):
    """An offset, and the leader epoch in which it was decided."""

    offset: int
    leader_epoch: int

    def covers(self, other: LogStart) -> bool:
        return self.offset >= other.offset and self.leader_epoch >= other.leader_epoch

    def within(self, lineage: Lineage) -> int:
        """Return the log start that this decision results in, for a log of this lineage."""
        later = (e.start_offset for e in lineage.entries if e.epoch > self.leader_epoch)
        return min([self.offset, *later])


def uncovered(
    starts: Iterable[LogStart], covering: Sequence[LogStart] = ()
) -> tuple[LogStart, ...]:
    """Drop starts that another one or one of `covering` covers; return the rest, descending."""
    kept: list[LogStart] = []
    for start in sorted(starts, reverse=True):
        if not any(each.covers(start) for each in (*kept, *covering)):
            kept.append(start)
    return tuple(kept)
