"""ShareGroups: the progress of the cluster's share groups (KIP-932) in their partitions.

**Data loss:** a broker silently moves a share group up to its own log start, and the group never
reads the records below. So a trim must know these groups.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from rlm.broker.partition_results import PartitionResults
from rlm.facts.share_group_start import ShareGroupStart


class ShareGroups(ABC):
    """Represents the share groups of one cluster. Not thread-safe."""

    @abstractmethod
    def starts(self) -> PartitionResults[ShareGroupStart]:
        """Return the group with the lowest start for each partition that groups read.

        A partition fails if the start of any of its groups is unknown. Raises
        HiddenShareGroupsError if the brokers may omit groups, and RetriableError if brokers are
        unreachable or a right is missing. Raises UnsupportedError if brokers list share groups and
        cannot describe them. Brokers without share groups cause no error.
        """
