"""Represents a partition's log starts, which owners decide or clients request. Pure.

A log start is valid for the log of the leader epoch in which it was decided. If a later epoch
begins at a lower offset, an unclean election has truncated that log there, and the later records
are new.

Each query applies the unchanged decisions to a lineage, because a second election may restore the
history that the first one cut off. One start covers another if neither its offset nor its epoch is
lower. Then it reaches at least as far in every lineage. So the covered start can be removed at any
time, also by compaction.

An unclean election may restore records that a deposed leader appended in an earlier epoch. A log
start cannot distinguish them from the records for which it was decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rsm.segment.epochs import Lineage


class LogStart(NamedTuple):
    """A log start, and the leader epoch in which it was decided or requested."""

    offset: int
    leader_epoch: int

    def covers(self, other: LogStart) -> bool:
        return self.offset >= other.offset and self.leader_epoch >= other.leader_epoch

    def within(self, lineage: Lineage) -> int:
        """Return the log start that results from this decision in a log with this lineage."""
        later = (e.start_offset for e in lineage.entries if e.epoch > self.leader_epoch)
        return min([self.offset, *later])


def uncovered(
    starts: Iterable[LogStart], covering: Sequence[LogStart] = ()
) -> tuple[LogStart, ...]:
    """Return, descending, the starts that neither another start nor one of `covering` covers."""
    kept: list[LogStart] = []
    for start in sorted(starts, reverse=True):
        if not any(each.covers(start) for each in (*kept, *covering)):
            kept.append(start)
    return tuple(kept)
