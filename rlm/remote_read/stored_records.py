"""Decodes stored batches into the records that a reader wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from rsm.read.segment_indexes import read_aborted
from rsm.read.segment_scan import RemoteScan
from rsm.segment.batches.aborted import AbortedTransactions, Isolation
from rsm.segment.batches.batch import scan_batches
from rsm.segment.batches.records import Record, decode_records
from rsm.segment.batches.segment_cursor import StoredBatches
from rsm.segment.metadata import RemoteLogSegmentMetadata
from rsm.segment.ranges import OffsetRange
from rsm.spi import RemoteStorageManager


class Tier(Enum):
    """Represents the tier from which records were read."""

    REMOTE = "remote"
    LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRecords:
    """Represents one or more records of one tier, in order."""

    tier: Tier
    records: Sequence[Record]


def stored_records(
    scan: RemoteScan, wanted: OffsetRange, storage: RemoteStorageManager, isolation: Isolation
) -> Iterator[TierRecords]:
    """Yield the records in `wanted`; omit control records.

    With READ_COMMITTED, also omits the records of aborted transactions, which each segment's
    companion lists. Raises the errors of `scan` and `storage`.
    """
    metadata: RemoteLogSegmentMetadata | None = None
    aborted = AbortedTransactions()
    for run in scan:
        if run.metadata is not metadata:
            metadata = run.metadata
            aborted = read_aborted(storage, metadata, isolation)
        for records in _decoded(run, wanted, aborted):
            yield TierRecords(tier=Tier.REMOTE, records=records)


def _decoded(
    run: StoredBatches, wanted: OffsetRange, aborted: AbortedTransactions
) -> Iterator[Sequence[Record]]:
    """Yield each batch's records in `wanted`, if it has any."""
    for position, header in scan_batches(run.data):
        if header.is_control or aborted.are_aborted(header):
            continue
        records = decode_records(header, run.data[position : position + header.length_bytes])
        # Only the first and last batch can contain records outside of `wanted`. The header of a
        # compressed message of magic 0 or 1 contains only the last offset, so compare records.
        if records and not (
            wanted.start_offset <= records[0].offset and records[-1].offset < wanted.end_offset
        ):
            records = tuple(record for record in records if record.offset in wanted)
        if records:
            yield records
