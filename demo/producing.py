"""Produces the demo's records with one producer per compression codec, and fills the ledger.

The producers alternate after 200 records each, so that each partition contains batches of all
codecs. The ledger gets each produced record with its acknowledged offset and timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle

from confluent_kafka import KafkaError, Message, Producer

from demo.failure import DemoFailedError
from demo.ledger import LoggedRecord, RecordLedger
from demo.records import DemoRecord

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_STRETCH = 200
_FLUSH_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducedTotals:
    """The number of produced records, and the bytes of their keys, values and headers."""

    records: int
    record_bytes: int


def produce(
    bootstrap_servers: str,
    topic: str,
    records: Iterator[DemoRecord],
    *,
    total_bytes: int,
    ledger: RecordLedger,
    on_progress: Callable[[int], None],
) -> ProducedTotals:
    """Produce `records` until their bytes reach `total_bytes`; wait for all acknowledgements.

    Calls `on_progress` with the bytes so far. Raises DemoFailedError if a record is not
    acknowledged.
    """
    producers = [_producer(bootstrap_servers, codec) for codec in CODECS]
    count, size_bytes = 0, 0
    for producer in cycle(producers):
        if size_bytes >= total_bytes:
            break
        for _ in range(_STRETCH):
            record = next(records)
            _hand_over(producer, topic, record, ledger)
            count += 1
            size_bytes += record.size_bytes
        producer.poll(0)
        on_progress(size_bytes)
    for producer in producers:
        if producer.flush(_FLUSH_TIMEOUT_S):
            raise DemoFailedError(
                f"cannot produce all records: some are not acknowledged after {_FLUSH_TIMEOUT_S} s"
            )
    return ProducedTotals(records=count, record_bytes=size_bytes)


def _producer(bootstrap_servers: str, codec: str) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "compression.type": codec,
            "enable.idempotence": True,  # Without it, a retry can write a record twice.
            "linger.ms": 20,
            "log_level": 3,  # This hides warnings while the broker's coordinator is loading.
            "batch.size": 131_072,
        }
    )


def _hand_over(producer: Producer, topic: str, record: DemoRecord, ledger: RecordLedger) -> None:
    while True:
        try:
            producer.produce(
                topic,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                on_delivery=partial(_acknowledged, ledger, record),
            )
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _acknowledged(
    ledger: RecordLedger, record: DemoRecord, error: KafkaError | None, message: Message
) -> None:
    offset = message.offset()
    if error is not None or offset is None:
        raise DemoFailedError(f"cannot produce a record: it was not acknowledged: {error}")
    _, timestamp_ms = message.timestamp()
    ledger.enter(
        LoggedRecord(
            partition=record.partition,
            offset=offset,
            timestamp_ms=timestamp_ms,
            key=record.key,
            value=record.value,
            headers=record.headers,
        )
    )
