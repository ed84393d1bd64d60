"""Defines isolation levels, and finds the batches of aborted transactions. Pure.

A producer has at most one open transaction in a partition. So all of its transactional batches from
an aborted transaction's first offset to the marker belong to that transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from rsm.segment.batches.batch import BatchHeader
from rsm.segment.local_segment import AbortedTransaction


class Isolation(Enum):
    """Represents Kafka's `isolation.level`: whether to read records of aborted transactions."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class AbortedTransactions:
    """Represents the aborted transactions that overlap the range to read."""

    def __init__(self, transactions: Iterable[AbortedTransaction] = ()) -> None:
        self._by_producer: dict[int, list[AbortedTransaction]] = {}
        for each in transactions:
            self._by_producer.setdefault(each.producer_id, []).append(each)

    def __bool__(self) -> bool:
        """Return whether there is an aborted transaction."""
        return bool(self._by_producer)

    def are_aborted(self, header: BatchHeader) -> bool:
        """Return whether the batch belongs to an aborted transaction."""
        return header.is_transactional and any(
            each.first_offset <= header.base_offset <= each.last_offset
            for each in self._by_producer.get(header.producer_id, ())
        )
