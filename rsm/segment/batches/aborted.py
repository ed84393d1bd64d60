"""Isolation levels, and the batches that readers of committed records skip. Pure.

A producer has one transaction at a time in a partition. So its transactional batches from an
aborted transaction's first offset to the marker belong to that transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from rsm.segment.batches.batch import BatchHeader
from rsm.segment.local_segment import AbortedTransaction


class Isolation(Enum):
    """Kafka's isolation.level: whether records of aborted transactions are read."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class AbortedTransactions:
    """The aborted transactions that overlap the read range, as stored with each segment."""

    def __init__(self, transactions: Iterable[AbortedTransaction] = ()) -> None:
        self._by_producer: dict[int, list[AbortedTransaction]] = {}
        for each in transactions:
            self._by_producer.setdefault(each.producer_id, []).append(each)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._by_producer)

    def are_aborted(self, header: BatchHeader) -> bool:
        """Return whether the batch's records were aborted."""
        return header.is_transactional and any(
            each.first_offset <= header.base_offset <= each.last_offset
            for each in self._by_producer.get(header.producer_id, ())
        )
