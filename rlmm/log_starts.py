"""Where a partition's log is to start, by its owners or by requests of clients.

Each holds as far as the leader epoch that it was decided in: where a later epoch has begun below,
an unclean election has cut off what it was decided of, and what is written from there on is new.

They are kept as they were decided, and how far they reach is asked of a lineage: a second election
may bring back the history that the first had cut off. One start covers another if its offset is as
high and its epoch as late: then it reaches as far in every lineage. So what is covered can be
forgotten, sooner or later or never, and compaction may have taken any of it.

What a deposed leader took in an earlier epoch, and an unclean election brings to life afterwards,
is not told from what a start was decided of. Pure.
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
        """How far it reaches in a log of this lineage."""
        later = (e.start_offset for e in lineage.entries if e.epoch > self.leader_epoch)
        return min([self.offset, *later])


def uncovered(
    starts: Iterable[LogStart], covering: Sequence[LogStart] = ()
) -> tuple[LogStart, ...]:
    """Those that neither another one nor any of `covering` covers, descending by offset."""
    kept: list[LogStart] = []
    for start in sorted(starts, reverse=True):
        if not any(each.covers(start) for each in (*kept, *covering)):
            kept.append(start)
    return tuple(kept)
