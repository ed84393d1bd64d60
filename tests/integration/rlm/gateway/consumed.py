"""Evaluates Fetch responses as a consumer does: batches, and which of them it delivers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rlm.wire.api.fetch import AbortedTransaction, PartitionData
from rlm.wire.schema import Records
from rsm.segment.batches.batch import BatchHeader, scan_batches


def record_bytes(records: Records | None) -> bytes:
    """Return all bytes of a response's records."""
    return b"".join(records) if isinstance(records, tuple) else bytes(records or b"")


def whole_batches(records: Records | None) -> list[BatchHeader]:
    """Return the whole batches of a response; a broker's response may end within a batch."""
    return [header for _, header in scan_batches(memoryview(record_bytes(records)))]


def aborted_below(row: PartitionData, end_offset: int) -> tuple[AbortedTransaction, ...]:
    """Return a response's aborted transactions that begin below `end_offset`."""
    listed = row.aborted_transactions or ()
    return tuple(each for each in listed if each.first_offset < end_offset)


def committed_offsets(
    row: PartitionData, batches: Sequence[BatchHeader], from_offset: int
) -> list[int]:
    """Return the first offsets of the batches that a read_committed reader delivers.

    Like Kafka's CompletedFetch, it omits a producer's transactional batches from the first offset
    of an aborted transaction up to its marker.
    """
    waiting = sorted(row.aborted_transactions or (), key=lambda each: each.first_offset)
    aborting: set[int] = set()
    delivered = []
    for batch in batches:
        while waiting and waiting[0].first_offset <= batch.last_offset:
            aborting.add(waiting.pop(0).producer_id)
        if batch.is_control:
            aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            delivered.append(max(batch.base_offset, from_offset))
    return delivered
