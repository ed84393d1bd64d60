"""The reader over librdkafka: `python -m tests.clients.librdkafka_reader …` (reader_contract)."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
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


def _bounds(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """Return the first offset and the end of a partition; retry, because librdkafka does not.

    While a leader moves, librdkafka may return the end as both (docs/gateway.md), so only a second
    answer of an empty log counts.
    """
    give_up_s = time.monotonic() + DEADLINE_S
    before: tuple[int, int] | None = None
    while True:
        try:
            found = consumer.get_watermark_offsets(partition, timeout=_REQUEST_TIMEOUT_S)
        except KafkaException:
            if time.monotonic() > give_up_s:
                raise
        else:
            # If a broker has just gone, the library may return no offset (-1001) without an error.
            if min(found) >= 0 and (found[0] < found[1] or found == before):
                return found
            assert time.monotonic() < give_up_s, f"no bounds of {partition}: {found}"
            before = found
        consumer.poll(_POLL_S)


def _partitions(consumer: Consumer, topic: str) -> list[TopicPartition]:
    metadata = consumer.list_topics(topic, timeout=_REQUEST_TIMEOUT_S)
    return [TopicPartition(topic, number) for number in metadata.topics[topic].partitions]


def _starts(
    consumer: Consumer, request: ReadRequest, bounds: Mapping[int, tuple[int, int]]
) -> list[TopicPartition]:
    topic, time_ms = request.topic, request.time_ms
    if time_ms is None:
        return [TopicPartition(topic, number, start) for number, (start, _) in bounds.items()]
    times = [TopicPartition(topic, number, time_ms) for number in bounds]
    return consumer.offsets_for_times(times, timeout=_REQUEST_TIMEOUT_S)


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    found = message.headers() or []
    assert isinstance(found, list)
    return [
        (name, content.encode() if isinstance(content, str) else content) for name, content in found
    ]


def _take(message: Message, digests: RecordDigests) -> tuple[int, int]:
    """Return the message's partition and the position after it. KafkaException ends the read."""
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
    """Read as tests/clients/reader_contract.py says."""
    digests, positions = RecordDigests(), dict[int, int]()
    with closing(_consumer(request)) as consumer:
        partitions = _partitions(consumer, request.topic)
        bounds = {each.partition: _bounds(consumer, each) for each in partitions}
        ends = {number: end for number, (_, end) in bounds.items()}
        sys.stderr.write(f"of {partitions}: first offsets and ends {bounds}\n")
        if request.group is not None:
            consumer.subscribe([request.topic])
        else:
            consumer.assign(_starts(consumer, request, bounds))
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
