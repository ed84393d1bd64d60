"""What becomes of what cannot be read, where the mode lets the task go on."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from rsm.segment.errors import CorruptError, NotFoundError, TieredStorageError
from spark_tools.reading.options import Mode
from spark_tools.rows.row_batches import PartitionRows

_log = logging.getLogger(__name__)


def may_be_left_out(error: TieredStorageError, mode: Mode) -> bool:
    """Whether the task goes on without what could not be read.

    Without a word in the rows only what is gone or damaged for good is left out: what may be had
    the next time is tried again by Spark.
    """
    if mode is Mode.DROPMALFORMED:
        return isinstance(error, NotFoundError | CorruptError)
    return mode is Mode.PERMISSIVE


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
