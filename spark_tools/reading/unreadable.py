"""Handles unreadable offsets in the modes that need not fail the task."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from rsm.segment.errors import CorruptError, NotFoundError, TieredStorageError
from rsm.segment.log_line import LogLine
from spark_tools.reading.options import Mode
from spark_tools.rows.row_batches import PartitionRows

_log = logging.getLogger(__name__)


def may_be_left_out(error: TieredStorageError, mode: Mode) -> bool:
    """Return whether the task continues without the unreadable offsets.

    DROPMALFORMED leaves no trace in the rows, so it omits only permanent losses. Spark retries a
    task after a temporary error.
    """
    if mode is Mode.DROPMALFORMED:
        return isinstance(error, NotFoundError | CorruptError)
    return mode is Mode.PERMISSIVE


def left_out(
    rows: PartitionRows, mode: Mode, *, from_offset: int, reason: object
) -> Iterator[pa.RecordBatch]:
    """In PERMISSIVE mode, yield a row with the reason; otherwise log a warning."""
    if mode is Mode.PERMISSIVE:
        yield rows.unreadable(from_offset, str(reason))
    else:
        _log.warning(
            LogLine(
                "left out the rows of an unreadable range",
                topic=rows.topic,
                partition=rows.partition,
                from_offset=from_offset,
                reason=reason,
            )
        )
