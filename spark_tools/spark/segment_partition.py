"""Represents the part of a query that Spark sends to an executor, and yields its rows there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from rsm.segment.errors import NotFoundError
from spark_tools.connection import ClusterConnection
from spark_tools.notebook import in_one_sentence
from spark_tools.python_worker import exempt_modules_from_collection
from spark_tools.reading.broker_reader import read_from_broker
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import BrokerPiece, Task
from spark_tools.reading.segment_reader import read_piece
from spark_tools.schemas.decoded_rows import POSITION_COLUMNS, decoded_rows
from spark_tools.schemas.decoding import Decoding


class SegmentPartition(InputPartition):
    """The pieces that one task reads: pieces of segments, one of a broker's log, or one hole."""

    def __init__(self, task: Task, planned_at: datetime) -> None:
        super().__init__(task)
        self.task = task
        self.planned_at = planned_at


def partition_rows(
    partition: InputPartition,
    connection: ClusterConnection,
    options: ReadOptions,
    decoding: Decoding | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition. Yields none for a partition of Spark's class (an empty read).

    If `decoding` decodes or selects columns, rows have its columns instead of those of the options.
    """
    if not isinstance(partition, SegmentPartition):
        return
    with in_one_sentence():
        if decoding is None or not (decoding.readers or decoding.output):
            yield from _rows(partition, connection, options)
        else:
            columns = tuple(dict.fromkeys((*options.columns, *POSITION_COLUMNS)))
            rows = _rows(partition, connection, replace(options, columns=columns))
            yield from decoded_rows(rows, decoding, decoding.columns(options.columns))
    exempt_modules_from_collection()


def _rows(
    partition: SegmentPartition, connection: ClusterConnection, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """Yield rows before their columns are decoded."""
    first = partition.task[0]
    if isinstance(first, BrokerPiece):
        yield from read_from_broker(first, connection.client, options)
        return
    storage = connection.store.open()
    try:
        for piece in partition.task:
            if not isinstance(piece, BrokerPiece):
                yield from read_piece(piece, storage, options)
    except NotFoundError as error:
        raise _no_longer_stored(error, partition.planned_at) from error
    finally:
        storage.close()


def _no_longer_stored(error: NotFoundError, planned_at: datetime) -> NotFoundError:
    return NotFoundError(
        "cannot read a segment: it expired after the query was planned, or an object is missing",
        planned_at=planned_at.isoformat(timespec="seconds"),
        reason=error,
        advice="Call load() again. If that fails, too, run `rlm-audit` to find missing objects",
    )
