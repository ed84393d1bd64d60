"""The reader over librdkafka: `python -m tests.clients.librdkafka_reader …` (reader_contract)."""

from __future__ import annotations

import sys
import time
from contextlib import closing

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tests.clients.reader_contract import (
    DEADLINE_S,
    ReadRequest,
    parse_arguments,
    print_line,
    print_reads,
)
from tests.clients.record_digests import RecordDigests

_REQUEST_TIMEOUT_S = 30.0
_POLL_S = 0.2


def _consumer(request: ReadRequest) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": request.bootstrap,
            "group.id": request.group or "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "isolation.level": request.isolation,
            "client.rack": request.rack,
            "fetch.message.max.bytes": request.fetch_bytes,
            "queued.min.messages": 1,
            "queued.max.messages.kbytes": max(1, request.fetch_bytes >> 10),
            "fetch.queue.backoff.ms": 2,
        }
    )


def _ends(consumer: Consumer, topic: str) -> dict[int, int]:
    found = consumer.list_topics(topic, timeout=_REQUEST_TIMEOUT_S).topics[topic].partitions
    return {
        number: consumer.get_watermark_offsets(
            TopicPartition(topic, number), timeout=_REQUEST_TIMEOUT_S
        )[1]
        for number in found
    }


def _starts(consumer: Consumer, request: ReadRequest, numbers: list[int]) -> list[TopicPartition]:
    topic, time_ms = request.topic, request.time_ms
    if time_ms is not None:
        times = [TopicPartition(topic, number, time_ms) for number in numbers]
        return consumer.offsets_for_times(times, timeout=_REQUEST_TIMEOUT_S)
    partitions = [TopicPartition(topic, number) for number in numbers]
    for each in partitions:
        each.offset, _ = consumer.get_watermark_offsets(each, timeout=_REQUEST_TIMEOUT_S)
    return partitions


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    found = message.headers() or []
    assert isinstance(found, list)
    return [
        (name, content.encode() if isinstance(content, str) else content) for name, content in found
    ]


def _take(message: Message, digests: RecordDigests) -> tuple[int, int]:
    """The message's partition and the position behind it. KafkaException for what ends a read."""
    partition, offset, error = message.partition(), message.offset(), message.error()
    if error is not None:
        if error.name() == "_PARTITION_EOF":
            return partition or 0, offset or 0
        if error.retriable() or error.name() in {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE"}:
            return -1, -1
        raise KafkaException(error)
    assert partition is not None
    assert offset is not None
    digests.add(
        partition=partition,
        offset=offset,
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=_headers(message),
    )
    return partition, offset + 1


def read(request: ReadRequest) -> RecordDigests:
    """Do what the contract says."""
    digests, positions = RecordDigests(), dict[int, int]()
    with closing(_consumer(request)) as consumer:
        ends = _ends(consumer, request.topic)
        if request.group is not None:
            consumer.subscribe([request.topic])
        else:
            consumer.assign(_starts(consumer, request, list(ends)))
        deadline = time.monotonic() + DEADLINE_S
        while any(positions.get(number, -1) < end for number, end in ends.items()):
            assert time.monotonic() < deadline, f"positions {positions}, ends {ends}"
            message = consumer.poll(_POLL_S)
            if message is None:
                continue
            number, position = _take(message, digests)
            positions[number] = position
            if digests.count == request.pause and message.error() is None:
                print_line({"paused": digests.count})
                sys.stdin.readline()
                deadline = time.monotonic() + DEADLINE_S
    return digests


if __name__ == "__main__":
    print_reads(read(parse_arguments(sys.argv[1:])))
