"""Tracks the followed metadata partitions, and which of them are caught up.

A partition is caught up once the records that it contained when following began are applied. Then
queries about it work, even while the topic is unreachable, until it is forgotten. It is forgotten
before its data is dropped. Each catch-up has a different number, so that a query can detect that
data was dropped while it ran.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rlmm.positions import ReadPosition


class FollowedPartitions:
    """Represents the followed partitions.

    Only the follower's thread changes them. Other threads may read `caught_up`, which is replaced
    and never changed in place.
    """

    def __init__(self) -> None:
        self.numbers: frozenset[int] = frozenset()
        self.caught_up: Mapping[int, int] = {}
        self._missing_ends: dict[int, int] = {}
        self._awaited: frozenset[int] = frozenset()
        self._run = 0

    def begin(self) -> None:
        """Follow no partitions; those that were caught up still answer queries."""
        self.numbers = self._awaited = frozenset()
        self._missing_ends = {}

    def forget(self, partitions: Collection[int] | None = None) -> None:
        """Stop answering queries about these partitions; about all partitions if None."""
        gone = self.caught_up.keys() if partitions is None else partitions
        self.caught_up = {p: run for p, run in self.caught_up.items() if p not in gone}

    def follow(
        self, partitions: frozenset[int], new_ends: Mapping[int, int], *, awaited: bool
    ) -> None:
        """Follow exactly these partitions; new ones are caught up at their `new_ends`.

        If `awaited`, the process is not ready until all of them are caught up.
        """
        self._missing_ends = {
            p: end for p, end in {**self._missing_ends, **new_ends}.items() if p in partitions
        }
        self._awaited = partitions if awaited else self._awaited & partitions
        self.numbers = partitions

    def settle(self, positions: Mapping[int, ReadPosition], answered: Collection[int]) -> bool:
        """Update which partitions are caught up; return whether any has just caught up.

        A partition counts only after it has answered, which confirms the records read before.
        """
        reached = [
            p
            for p, end in self._missing_ends.items()
            if p in answered and positions[p].offset >= end
        ]
        if not reached:
            return False
        for partition in reached:
            del self._missing_ends[partition]
        self._run += 1
        self.caught_up = {**dict.fromkeys(reached, self._run), **self.caught_up}
        return True

    def awaited_ends(self) -> Mapping[int, int]:
        """Return the ends that the awaited partitions must still reach."""
        return {p: end for p, end in self._missing_ends.items() if p in self._awaited}

    @property
    def missing_ends(self) -> Mapping[int, int]:
        """Return the end that each partition must reach to be caught up."""
        return self._missing_ends

    @property
    def catching_up_count(self) -> int:
        """Return the number of followed partitions that are not caught up."""
        return len(self._missing_ends)
