"""Finds the leader epoch of each offset, and joins lineages from two sources.

A lineage is a log's list of (epoch, start offset), as in Kafka's LeaderEpochFileCache. When the log
start moves, the broker cuts the list (UnifiedLog.maybeIncrementLogStartOffset) and sets the first
entry's offset to the new start. So the first entry of a broker's checkpoint is only an upper bound
of its epoch's start. The manager therefore stores the whole lineage with each claim and before each
trim, and joins it with the checkpoint here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class EpochEntry:
    """Represents a leader epoch, which ends below the start offset of the next entry."""

    epoch: int
    start_offset: int

    def __post_init__(self) -> None:
        if self.epoch < 0 or self.start_offset < 0:
            raise ValueError(
                f"the epoch entry is invalid: {self.epoch} {self.start_offset}, expected both >= 0"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Represents a log's leader epochs. Epochs ascend strictly; start offsets never decrease."""

    entries: tuple[EpochEntry, ...] = ()

    def __post_init__(self) -> None:
        for before, after in pairwise(self.entries):
            if before.epoch >= after.epoch or before.start_offset > after.start_offset:
                raise ValueError(f"the epochs do not ascend: {before}, then {after}")

    @classmethod
    def of(cls, *pairs: tuple[int, int]) -> Lineage:
        """Build from (epoch, start offset) pairs, as in a checkpoint."""
        return cls(entries=tuple(EpochEntry(epoch=e, start_offset=o) for e, o in pairs))

    def __bool__(self) -> bool:
        return bool(self.entries)

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch of `offset`; None if it is below the first entry."""
        index = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[index - 1].epoch if index else None

    def start_offset(self, epoch: int) -> int | None:
        """Return the start of `epoch`; None if it is not in this lineage."""
        return next((e.start_offset for e in self.entries if e.epoch == epoch), None)

    def end_offset(self, epoch: int) -> int | None:
        """Return the start of the epoch after `epoch`; None for the last epoch, which is open."""
        return next((e.start_offset for e in self.entries if e.epoch > epoch), None)

    def within(self, offsets: OffsetRange) -> Lineage:
        """Return this lineage, clipped to `offsets`.

        KIP-405 stores the result as a segment's leader epochs. It is empty for an empty range.
        """
        kept: list[EpochEntry] = []
        for entry, following in zip_longest(self.entries, self.entries[1:]):
            end = following.start_offset if following else offsets.end_offset
            start = max(entry.start_offset, offsets.start_offset)
            if start < min(end, offsets.end_offset):
                kept.append(EpochEntry(epoch=entry.epoch, start_offset=start))
        return Lineage(entries=tuple(kept))

    def common_end(self, others: Iterable[EpochEntry], end_offset: int) -> int:
        """Return the end offset of a segment's part that is in this lineage.

        `others` are the segment's leader epochs, and `end_offset` is the segment's end. The
        comparison begins at the segment's start, and ends in the first epoch that differs: this
        lineage lacks it, or contains it with an earlier end or a later start. Returns the segment's
        start if no part of the segment is in this lineage.
        """
        entries = tuple(others)
        position = entries[0].start_offset if entries else end_offset
        for index, entry in enumerate(entries):
            own_start = self.start_offset(entry.epoch)
            if own_start is None or own_start > entry.start_offset:
                return position
            last = index + 1 == len(entries)
            entry_end = end_offset if last else entries[index + 1].start_offset
            own_end = self.end_offset(entry.epoch)
            if own_end is not None and own_end < entry_end:
                return max(position, min(own_end, entry_end))
            position = entry_end
        return position


@dataclass(frozen=True, slots=True, kw_only=True)
class StitchedLineage:
    """Represents a stored lineage joined with a checkpoint.

    `conflict_offset` is None if there is no conflict.
    """

    lineage: Lineage
    conflict_offset: int | None = None


def stitch(stored: Lineage, checkpoint: Lineage) -> StitchedLineage:
    """Join the stored lineage with a broker's checkpoint.

    The checkpoint decides at and above its first entry, because an unclean election may have
    removed stored epochs. The stored lineage decides below that entry. If both contain the
    checkpoint's first epoch, the lower start is correct.

    A stored epoch that is newer than the checkpoint's first epoch is a conflict in two cases:

    - It began below the first epoch's offset in the checkpoint, so this offset has two epochs.
    - The stored lineage lacks the first epoch, so the logs diverged at an unknown lower offset.
    """
    if not stored or not checkpoint:
        return StitchedLineage(lineage=stored or checkpoint)
    first = checkpoint.entries[0]
    below = tuple(
        e for e in stored.entries if e.epoch < first.epoch and e.start_offset < first.start_offset
    )
    known_start = stored.start_offset(first.epoch)
    newer = [e for e in stored.entries if e.epoch > first.epoch]
    parted = any(known_start is None or e.start_offset < first.start_offset for e in newer)
    start = first.start_offset if known_start is None else min(known_start, first.start_offset)
    joined = (*below, EpochEntry(epoch=first.epoch, start_offset=start), *checkpoint.entries[1:])
    return StitchedLineage(
        lineage=Lineage(entries=joined),
        conflict_offset=first.start_offset if parted else None,
    )
