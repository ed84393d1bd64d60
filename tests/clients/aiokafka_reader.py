"""The reader over aiokafka: `python -m tests.clients.aiokafka_reader …` (reader_contract).

aiokafka knows no racks.
"""

from __future__ import annotations

import asyncio
import sys
import time

from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.clients.reader_contract import (
    DEADLINE_S,
    RECORDS_PER_POLL,
    ReadRequest,
    parse_arguments,
    print_line,
    print_reads,
)
from tests.clients.record_digests import RecordDigests

_POLL_MS = 200


def _consumer(request: ReadRequest) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=request.bootstrap,
        group_id=request.group,
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level=request.isolation,
        max_partition_fetch_bytes=request.fetch_bytes,
    )


async def _partitions(consumer: AIOKafkaConsumer, topic: str) -> list[TopicPartition]:
    # Requested separately, because a consumer's metadata of an unassigned topic may be old.
    metadata = await consumer._client.fetch_all_metadata()
    numbers = metadata.partitions_for_topic(topic)
    assert numbers, f"{topic} is not there"
    return [TopicPartition(topic, number) for number in sorted(numbers)]


async def _assign(
    consumer: AIOKafkaConsumer,
    request: ReadRequest,
    partitions: list[TopicPartition],
    ends: dict[TopicPartition, int],
) -> None:
    if request.group is not None:
        consumer.subscribe([request.topic])
        return
    consumer.assign(partitions)
    if request.time_ms is None:
        starts = await consumer.beginning_offsets(partitions)
    else:
        found = await consumer.offsets_for_times(dict.fromkeys(partitions, request.time_ms))
        starts = {each: at.offset if at else ends[each] for each, at in found.items()}
    for each, offset in starts.items():
        consumer.seek(each, offset)


async def _is_at_the_end(consumer: AIOKafkaConsumer, ends: dict[TopicPartition, int]) -> bool:
    if not ends.keys() <= consumer.assignment():
        return False
    return all([await consumer.position(each) >= end for each, end in ends.items()])


async def _pause(count: int) -> None:
    print_line({"paused": count})
    # The event loop must keep running, because its tasks send the group's heartbeats.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def read(request: ReadRequest) -> RecordDigests:
    """Read as tests/clients/reader_contract.py says."""
    digests = RecordDigests()
    async with _consumer(request) as consumer:
        partitions = await _partitions(consumer, request.topic)
        ends = await consumer.end_offsets(partitions)
        await _assign(consumer, request, partitions, ends)
        deadline = time.monotonic() + DEADLINE_S
        while not await _is_at_the_end(consumer, ends):
            assert time.monotonic() < deadline, f"read {digests.reads()}, ends {ends}"
            polled = await consumer.getmany(timeout_ms=_POLL_MS, max_records=RECORDS_PER_POLL)
            before = digests.count
            for each, records in polled.items():
                for record in records:
                    digests.add(
                        partition=each.partition,
                        offset=record.offset,
                        timestamp_ms=record.timestamp,
                        key=record.key,
                        value=record.value,
                        headers=record.headers,
                    )
            if before < request.pause <= digests.count:
                await _pause(digests.count)
                deadline = time.monotonic() + DEADLINE_S
    return digests


if __name__ == "__main__":
    print_reads(asyncio.run(read(parse_arguments(sys.argv[1:]))))
