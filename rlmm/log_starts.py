"""Where a partition's log is to start, by its owners or by requests of clients.

Each holds as far as the leader epoch that it was decided in: where a later epoch has begun below,
an unclean election has cut off what it was decided of, and what is written from there on is new.

One start covers another if it reaches as far and its epoch is as late: whatever epochs are still to
begin, it goes on to reach as far. So what is covered can be forgotten, sooner or later or never,
and the same is kept; compaction may have taken any of it. Pure.
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


def uncovered(
    starts: Iterable[LogStart], covering: Sequence[LogStart] = ()
) -> tuple[LogStart, ...]:
    """Those that neither another one nor any of `covering` covers, descending by offset."""
    kept: list[LogStart] = []
    for start in sorted(starts, reverse=True):
        if not any(each.covers(start) for each in (*kept, *covering)):
            kept.append(start)
    return tuple(kept)


def cut_off(start: LogStart, lineage: Lineage) -> LogStart:
    """What the epochs of a lineage leave of it."""
    later = (e.start_offset for e in lineage.entries if e.epoch > start.leader_epoch)
    return start._replace(offset=min([start.offset, *later]))
