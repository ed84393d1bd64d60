"""Collects the aborted transactions of a segment, including those that end after it.

The index of the segment with the abort marker lists the aborted transaction, with the log's last
stable offset at that time. The search continues through later segments until an entry's last
stable offset reaches the segment's end: no transaction that ends later can have begun in the
segment. The marker itself may be above the last stable offset, if another transaction is still open
below it. Source: LogSegment.collectAbortedTxns, TransactionIndex
(org.apache.kafka.storage.internals.log).
"""

from __future__ import annotations

from dataclasses import dataclass

from rlm.source.partition_files import (
    TRANSACTION_INDEX_SUFFIX,
    PartitionFiles,
    read_or_none,
)
from rsm.segment.errors import CorruptError, RetriableError, UnsupportedError
from rsm.segment.indexes import TRANSACTION_ENTRY, TransactionIndex
from rsm.segment.local_segment import AbortedTransaction
from rsm.segment.ranges import OffsetRange

# This bounds memory; the format has no limit. It suffices for almost two million transactions.
MAX_INDEX_BYTES = 64 << 20
_NO_END_OFFSET = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTransactions:
    """Represents a segment's transaction index, and the aborted transactions that overlap it."""

    transaction_index: bytes | None
    aborted_transactions: tuple[AbortedTransaction, ...]


def read_segment_transactions(
    files: PartitionFiles, file_base_offset: int, offsets: OffsetRange
) -> SegmentTransactions:
    """Read the transaction indexes for `offsets` of the file at `file_base_offset`.

    For a part of a file, the returned index contains the entries whose markers are in the part.

    The result is complete if every transaction that overlaps the segment had ended before `files`
    were listed. Raises CorruptError or UnsupportedError if an index is unreadable: unlike the other
    indexes, it cannot be rebuilt from the segment alone. Raises RetriableError if one is
    deleted meanwhile.
    """
    own: bytes | None = None
    aborted: list[AbortedTransaction] = []
    for base_offset in files.transaction_index_base_offsets:
        if base_offset < file_base_offset:
            continue
        index = _read_index(files, base_offset)
        if base_offset == file_base_offset:
            within = tuple(each for each in index.transactions if each.last_offset in offsets)
            own = TransactionIndex(transactions=within).to_bytes()
        aborted.extend(index.overlapping(offsets))
        last = index.transactions[-1:]
        if last and last[0].last_stable_offset >= offsets.end_offset:
            break
    return SegmentTransactions(transaction_index=own, aborted_transactions=tuple(aborted))


def _read_index(files: PartitionFiles, base_offset: int) -> TransactionIndex:
    path = files.path(base_offset, TRANSACTION_INDEX_SUFFIX)
    content = read_or_none(path, max_bytes=MAX_INDEX_BYTES + 1)
    if content is None:
        raise RetriableError("cannot read the transaction index: it was deleted", path=path)
    if len(content) > MAX_INDEX_BYTES:
        raise UnsupportedError(
            "cannot read the transaction index: it is too large",
            path=path,
            max_bytes=MAX_INDEX_BYTES,
        )
    end_offset = files.next_base_offset(base_offset)
    if end_offset is None:
        # The broker may be writing its last entry; that transaction is too new to matter.
        content = content[: len(content) // TRANSACTION_ENTRY.size * TRANSACTION_ENTRY.size]
        end_offset = _NO_END_OFFSET
    offsets = OffsetRange(start_offset=base_offset, end_offset=end_offset)
    try:
        return TransactionIndex.parse(content, offsets=offsets)
    except CorruptError as error:
        raise CorruptError(error.message, path=path, **error.context) from error
