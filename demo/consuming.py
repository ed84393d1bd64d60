"""Reads a partition with a plain consumer that knows only the gateway's address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from demo.failure import DemoFailedError
from demo.ledger import LoggedRecord
from demo.records import Headers

_SILENCE_S = 60.0
_AT_ONCE = 1_000
_POLL_S = 0.2


def consume(bootstrap_servers: str, topic: str, partition: int) -> Iterator[LoggedRecord]:
    """Yield all records from offset 0 to the partition's end offset.

    Raises DemoFailedError if the consumer fails or has to reset its position, or after a minute
    without records.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "demo",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }
    )
    with closing(consumer):
        consumer.assign([TopicPartition(topic, partition, 0)])
        silent_s = 0.0
        while silent_s < _SILENCE_S:
            messages = _next_messages(consumer)
            silent_s = 0.0 if messages else silent_s + _POLL_S
            for message in messages:
                error = message.error()
                if error is None:
                    yield _seen(message)
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                    return
                else:
                    raise DemoFailedError(f"cannot read partition {partition}: {error}")
    raise DemoFailedError(
        f"cannot read partition {partition}: no records arrived for {_SILENCE_S:.0f} s"
    )


def _next_messages(consumer: Consumer) -> list[Message]:
    try:
        return consumer.consume(_AT_ONCE, timeout=_POLL_S)
    except KafkaException as error:
        raise DemoFailedError(f"cannot read records: {error}") from error


def _seen(message: Message) -> LoggedRecord:
    offset, partition = message.offset(), message.partition()
    assert offset is not None
    assert partition is not None
    _, timestamp_ms = message.timestamp()
    return LoggedRecord(
        partition=partition,
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=message.key(),
        value=message.value(),
        headers=_headers(message),
    )


def _headers(message: Message) -> Headers:
    headers = message.headers()
    if not isinstance(headers, list):
        return ()
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in headers
    )
