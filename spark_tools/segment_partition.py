"""A piece of a segment, or of a broker's log, as Spark hands it to an executor; its rows there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from rsm.segment.errors import NotFoundError
from spark_tools.connection import Connection
from spark_tools.notebook import in_one_sentence
from spark_tools.reading.broker_reader import read_from_broker
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import BrokerPiece, Piece
from spark_tools.reading.segment_reader import read_piece
from spark_tools.schemas.decoded_rows import POSITION_COLUMNS, decoded_rows
from spark_tools.schemas.decoding import Decoding


class SegmentPartition(InputPartition):
    """One piece of a segment or of a broker's log."""

    def __init__(self, piece: Piece, planned_at: datetime) -> None:
        super().__init__(piece)
        self.piece = piece
        self.planned_at = planned_at


def partition_rows(
    partition: InputPartition,
    connection: Connection,
    options: ReadOptions,
    decoding: Decoding | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of one partition; none of Spark's own, which means "nothing is to be read".

    With columns decoded where `decoding` says so: the rows have its columns for those of the
    options.
    """
    if not isinstance(partition, SegmentPartition):
        return
    with in_one_sentence():
        if decoding is None or not (decoding.readers or decoding.output):
            yield from _rows(partition, connection, options)
            return
        columns = tuple(dict.fromkeys((*options.columns, *POSITION_COLUMNS)))
        rows = _rows(partition, connection, replace(options, columns=columns))
        yield from decoded_rows(rows, decoding, decoding.columns(options.columns))


def _rows(
    partition: SegmentPartition, connection: Connection, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """With the records' own columns."""
    if isinstance(partition.piece, BrokerPiece):
        yield from read_from_broker(partition.piece, connection.client, options)
        return
    storage = connection.store.open()
    try:
        yield from read_piece(partition.piece, storage, options)
    except NotFoundError as error:
        raise _no_longer_stored(error, partition.planned_at) from error
    finally:
        storage.close()


def _no_longer_stored(error: NotFoundError, planned_at: datetime) -> NotFoundError:
    return NotFoundError(
        "what was planned is not in the store: it has expired since, or is lost",
        planned_at=planned_at.isoformat(timespec="seconds"),
        reason=error,
        expected="load() again, which plans by what is stored now; `rlm-audit` finds what is lost",
    )
