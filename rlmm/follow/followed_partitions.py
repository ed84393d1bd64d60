"""Which metadata partitions are followed, and which of them were caught up with.

A partition is caught up with once all was applied that stood in it when it began to be followed.
From then on questions about it are answered, also while the topic cannot be reached, until it is
forgotten. It is forgotten here before its data is dropped; and as each catching up has a number of
its own, an answer that was found meanwhile can be told from a whole one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rlmm.positions import ReadPosition


class FollowedPartitions:
    """Changed by the follower's thread only; each value of `caught_up` is final, for any thread."""

    def __init__(self) -> None:
        self.numbers: frozenset[int] = frozenset()
        self.caught_up: Mapping[int, int] = {}
        self._missing_ends: dict[int, int] = {}
        self._awaited: frozenset[int] = frozenset()
        self._run = 0

    def begin(self) -> None:
        """Follow none; what was caught up with before still answers."""
        self.numbers = self._awaited = frozenset()
        self._missing_ends = {}

    def forget(self, partitions: Collection[int] | None = None) -> None:
        """These, or all, answer no longer."""
        gone = self.caught_up.keys() if partitions is None else partitions
        self.caught_up = {p: run for p, run in self.caught_up.items() if p not in gone}

    def follow(
        self, partitions: frozenset[int], new_ends: Mapping[int, int], *, awaited: bool
    ) -> None:
        """Follow these and no others; those that are new up to `new_ends` at first.

        `awaited`: the process as a whole is not ready before these are caught up with.
        """
        self._missing_ends = {
            p: end for p, end in {**self._missing_ends, **new_ends}.items() if p in partitions
        }
        self._awaited = partitions if awaited else self._awaited & partitions
        self.numbers = partitions

    def settle(self, positions: Mapping[int, ReadPosition], answered: Collection[int]) -> bool:
        """Whether partitions were just caught up with, as these positions show.

        Those that have not answered have not confirmed what was read before.
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
        """The ends that the process's readiness waits for still."""
        return {p: end for p, end in self._missing_ends.items() if p in self._awaited}

    @property
    def missing_ends(self) -> Mapping[int, int]:
        """The end up to which each is read that was not caught up with yet."""
        return self._missing_ends

    @property
    def catching_up_count(self) -> int:
        """How many partitions are followed and were not caught up with yet."""
        return len(self._missing_ends)
