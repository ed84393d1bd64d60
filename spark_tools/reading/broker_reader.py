"""Reads from a partition's broker the records that are not stored yet. Runs on executors.

The consumer reads one partition and commits no offsets. The range of offsets existed when the query
was planned. Memory: librdkafka's queue, and _ROWS_AT_ONCE messages.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from rsm.segment.batches.aborted import AbortedTransactions
from rsm.segment.errors import NotFoundError, RetriableError, TieredStorageError
from spark_tools.reading.options import ReadOptions
from spark_tools.reading.plan import BrokerPiece
from spark_tools.reading.unreadable import left_out, may_be_left_out
from spark_tools.rows.record_arrays import RecordArrays, RowBounds
from spark_tools.rows.row_batches import PartitionRows
from spark_tools.rows.schema import arrow_schema

_ROWS_AT_ONCE = 10_000
_POLL_S = 1.0
_GONE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})  # noqa: SLF001 - spelled so


def read_from_broker(
    piece: BrokerPiece, client: Mapping[str, str], options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece, in order of offset. `client` is librdkafka's configuration.

    The mode decides what happens at an unreadable offset: this function raises an error with
    partition and offset, yields a row with the reason, or only logs a warning. The error is
    NotFoundError if the broker no longer has the offsets, and RetriableError otherwise.
    """
    tip = piece.topic_id_partition
    rows = PartitionRows(
        topic=tip.topic,
        partition=tip.partition,
        columns=options.columns,
        bounds=RowBounds(offsets=piece.offsets, from_ms=options.from_ms, until_ms=options.until_ms),
        aborted=AbortedTransactions(),  # The consumer omits aborted records.
    )
    reader = BrokerReader(piece, client, options)
    try:
        yield from reader.rows(rows)
    except TieredStorageError as error:
        if not may_be_left_out(error, options.mode):
            raise
        yield from left_out(rows, options.mode, from_offset=reader.next_offset, reason=error)
    finally:
        reader.close()


class BrokerReader:
    """Reads one piece once. Not thread-safe."""

    def __init__(self, piece: BrokerPiece, client: Mapping[str, str], options: ReadOptions) -> None:
        self._piece = piece
        self._timeout_s = options.timeout_ms / 1000
        self._consumer = Consumer(
            {
                "group.id": "rlm-spark",  # The client requires it, though no group is joined.
                **client,
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": options.isolation.value,
            },
            logger=logging.getLogger("librdkafka.consumer"),
        )
        self.next_offset = piece.offsets.start_offset

    def rows(self, rows: PartitionRows) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Raises NotFoundError, RetriableError."""
        tip = self._piece.topic_id_partition
        self._consumer.assign([TopicPartition(tip.topic, tip.partition, self.next_offset)])
        give_up_s = time.monotonic() + self._timeout_s
        while not self._has_ended():
            # Request one message first: `consume` waits until it has the requested number.
            messages = self._consumer.consume(1, _POLL_S)
            if messages:
                messages += self._consumer.consume(_ROWS_AT_ONCE - 1, 0)
                give_up_s = time.monotonic() + self._timeout_s
            elif time.monotonic() > give_up_s:
                raise self._error(RetriableError, "the cluster did not answer in time")
            arrays = _arrays_of(self._taken(messages), rows.bounds)
            if len(arrays.offsets):
                yield rows.of_arrays(arrays)

    def close(self) -> None:
        """Close the consumer and its connections."""
        self._consumer.close()

    def _has_ended(self) -> bool:
        return self.next_offset >= self._piece.offsets.end_offset

    def _taken(self, messages: Sequence[Message]) -> list[Message]:
        """Return the records below the end of the piece.

        If only control records and aborted transactions are left, the only message reports the end
        of the log. If that end is below the piece's end, a new leader has an older high watermark,
        and the reader waits.
        """
        taken: list[Message] = []
        for message in messages:
            error, offset = message.error(), message.offset()
            if error is None and offset is not None:
                self.next_offset = offset + 1
                if offset < self._piece.offsets.end_offset:
                    taken.append(message)
            elif error is None or error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                self.next_offset = max(self.next_offset, offset or 0)
            elif error.code() in _GONE:
                raise self._error(
                    NotFoundError,
                    "the broker no longer has the record, but it may be stored",
                    advice="Run the query again",
                )
            elif not error.retriable():
                raise self._error(RetriableError, error.str())
        return taken

    def _error(
        self, kind: type[TieredStorageError], reason: str, **advice: str
    ) -> TieredStorageError:
        return kind(
            "cannot read the broker's records",
            partition=self._piece.topic_id_partition,
            offset=self.next_offset,
            reason=reason,
            **advice,
        )


def _arrays_of(messages: Sequence[Message], bounds: RowBounds) -> RecordArrays:
    """Return, as arrays, the messages within the bounds."""
    offsets = np.array([each.offset() for each in messages], dtype=np.int64)
    times = [each.timestamp() for each in messages]
    timestamps_ms = np.array([ms if kind else -1 for kind, ms in times], dtype=np.int64)
    chosen = bounds.chosen(offsets, timestamps_ms)
    kept = [messages[row] for row in chosen]
    epochs = [each.leader_epoch() for each in kept]
    return RecordArrays(
        offsets=offsets[chosen],
        timestamps_ms=timestamps_ms[chosen],
        timestamp_types=np.array([max(times[row][0] - 1, 0) for row in chosen], dtype=np.int32),
        leader_epochs=np.array([-1 if e is None else e for e in epochs], dtype=np.int32),
        keys=pa.array([each.key() for each in kept], pa.binary()),
        values=pa.array([each.value() for each in kept], pa.binary()),
        headers=pa.array(
            [_headers(each) for each in kept], arrow_schema(["headers"]).field("headers").type
        ),
    )


def _headers(message: Message) -> list[dict[str, object]] | None:
    headers = cast("list[tuple[str, bytes | None]] | None", message.headers())
    return [{"key": key, "value": value} for key, value in headers] if headers else None
