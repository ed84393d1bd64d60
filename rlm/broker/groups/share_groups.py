"""ShareGroups: how far the cluster's share groups (KIP-932) have come in their partitions.

A broker moves a share group up to its own log start, without a word. So whoever trims must know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from rlm.broker.partition_results import PartitionResults
from rsm.segment.errors import RetriableError


class HiddenShareGroupsError(RetriableError):
    """A broker may omit share groups from its answers. Somebody can grant the right at any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStart:
    """What a group has not done with begins at `offset`.

    -1 while that is not on record: until its first acknowledgement only the partition's leader
    knows where a group began, though its members may hold records already.
    """

    group: str
    offset: int


class ShareGroups(ABC):
    """The share groups of one cluster. Not thread-safe."""

    @abstractmethod
    def starts(self) -> PartitionResults[ShareGroupStart]:
        """Of each partition that groups read, the group that starts lowest.

        A partition fails if any group's start in it cannot be told. Raises HiddenShareGroupsError
        if the brokers may omit groups from the answer. Raises RetriableError if brokers cannot be
        asked now or a right is missing, UnsupportedError if they list share groups and cannot
        describe them. Brokers that have no share groups at all are no error.
        """
