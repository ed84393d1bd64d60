"""Decodes batches to rows for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rsm.segment.batches.aborted import AbortedTransactions
from rsm.segment.batches.segment_cursor import StoredBatches
from rsm.segment.ranges import OffsetRange
from spark_tools.rows.record_arrays import RowBounds
from spark_tools.rows.row_batches import PartitionRows
from spark_tools.rows.schema import COLUMNS
from tests.metadata_builder import segment_metadata

EVERYTHING = RowBounds(offsets=OffsetRange(start_offset=0, end_offset=1 << 62))


def rows_of(
    *batches: bytes,
    bounds: RowBounds = EVERYTHING,
    columns: Sequence[str] = COLUMNS,
    aborted: AbortedTransactions | None = None,
) -> list[dict[str, Any]]:
    data = memoryview(b"".join(batches))
    run = StoredBatches(metadata=segment_metadata(), offsets=EVERYTHING.offsets, data=data)
    rows = PartitionRows(
        topic="orders",
        partition=3,
        columns=tuple(columns),
        bounds=bounds,
        aborted=aborted or AbortedTransactions(),
    )
    return [row for batch in rows.of_run(run) for row in batch.to_pylist()]
