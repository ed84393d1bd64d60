"""Defines access to the start offsets of the cluster's share groups (KIP-932).

**Data loss:** a broker silently moves a share group forward to the broker's log start offset, and
the group never reads the records below it. So a trim must know the groups' start offsets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from rlm.broker.partition_results import PartitionResults
from rlm.facts.share_group_start import ShareGroupStart


class ShareGroups(ABC):
    """Represents the share groups of one cluster. Not thread-safe."""

    @abstractmethod
    def starts(self) -> PartitionResults[ShareGroupStart]:
        """Return the group with the lowest start offset for each partition that groups read.

        A partition fails if the start offset of any of its groups is unknown. Raises
        HiddenShareGroupsError if the brokers may omit groups, and RetriableError if brokers are
        unreachable or a right is missing. Raises UnsupportedError if brokers list share groups but
        cannot describe them. Brokers that do not support share groups cause no error.
        """
