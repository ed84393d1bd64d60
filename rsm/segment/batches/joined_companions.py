"""Builds the companions of a segment from consecutive parts of its log. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rsm.segment.batches.batch import NO_TIMESTAMP
from rsm.segment.batches.index_builder import IndexBuilder, IndexedBatch
from rsm.segment.epochs import Lineage
from rsm.segment.indexes import TransactionIndex
from rsm.segment.local_segment import AbortedTransaction, SegmentCompanions
from rsm.segment.ranges import OffsetRange

_END_OF_TIME_MS = (1 << 63) - 1


class JoinedCompanions:
    """Builds a segment's companions from the data of its consecutive parts. Not thread-safe.

    The indexes are those that a broker would write for the whole segment. The parts' transactions
    are combined in the order of their markers. Memory: the transactions and the indexes, at most 20
    bytes for each 4 KiB of the log.
    """

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self.forget_batches()
        self._transactions: dict[int, AbortedTransaction] | None = None
        self._aborted: dict[tuple[int, int], AbortedTransaction] = {}

    @property
    def max_timestamp_ms(self) -> int | None:
        """Return the greatest timestamp of the batches; None if no batch has a timestamp."""
        found = self._indexes.time_index().lookup(_END_OF_TIME_MS).timestamp_ms
        return None if found == NO_TIMESTAMP else found

    def append_batches(self, batches: Iterable[IndexedBatch]) -> None:
        """Add the next batches.

        Raises CorruptError as `IndexBuilder.append` does.
        """
        for batch in batches:
            self._indexes.append(batch)

    def forget_batches(self) -> None:
        """Forget the batches, but not the transactions, so that the parts can be read again."""
        self._indexes = IndexBuilder(base_offset=self._base_offset)

    def append_transactions(
        self,
        offsets: OffsetRange,
        transaction_index: bytes | None,
        aborted_transactions: Iterable[AbortedTransaction],
    ) -> None:
        """Add the transactions of the part with these offsets.

        Raises CorruptError for an invalid index.
        """
        if transaction_index is not None:
            index = TransactionIndex.parse(transaction_index, offsets=offsets)
            own = {each.last_offset: each for each in index.transactions}
            self._transactions = {**(self._transactions or {}), **own}
        for each in aborted_transactions:
            self._aborted[each.last_offset, each.producer_id] = each

    def companions(
        self, lineage: Lineage, *, producer_snapshot: bytes | None = None
    ) -> SegmentCompanions:
        """Return the companions of the parts so far."""
        transactions = self._transactions
        own = None if transactions is None else tuple(transactions.values())
        return SegmentCompanions(
            offset_index=self._indexes.offset_index().to_bytes(),
            time_index=self._indexes.time_index().to_bytes(),
            transaction_index=(
                None if own is None else TransactionIndex(transactions=own).to_bytes()
            ),
            producer_snapshot=producer_snapshot,
            lineage=lineage,
            aborted_transactions=tuple(self._aborted[key] for key in sorted(self._aborted)),
        )
