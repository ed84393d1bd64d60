"""What becomes of what can't be read, where the mode lets the task go on."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from spark_tools.reading.options import Mode
from spark_tools.rows.row_batches import PartitionRows

_log = logging.getLogger(__name__)


def left_out(
    rows: PartitionRows, mode: Mode, *, from_offset: int, reason: object
) -> Iterator[pa.RecordBatch]:
    """List it in a row of its own, or log a warning."""
    if mode is Mode.PERMISSIVE:
        yield rows.unreadable(from_offset, str(reason))
    else:
        _log.warning(
            "left out: %s:%d from offset %d on: %s", rows.topic, rows.partition, from_offset, reason
        )
