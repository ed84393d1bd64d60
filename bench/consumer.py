"""Reads one range of offsets with librdkafka's consumer, as fast as the consumer can.

If its queue is full, the consumer delays the next fetch by only 2 ms (fetch.queue.backoff.ms),
because a longer delay lowers the measured rate.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from rsm.segment.ranges import OffsetRange

DEFAULT_FETCH_BYTES = 1 << 20
LARGE_FETCH_BYTES = 16 << 20
_TIMEOUT_S = 60.0
_BATCH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeRun:
    """Represents one run: the times of the assignment and of the last record.

    All processes of a machine share the clock (CLOCK_MONOTONIC).
    """

    started_s: float
    ended_s: float


def consume(
    bootstrap_servers: str,
    topic: str,
    offsets: OffsetRange,
    *,
    fetch_bytes: int = LARGE_FETCH_BYTES,
) -> ConsumeRun:
    """Read partition 0 of a topic, at most `fetch_bytes` per fetch.

    Raises RuntimeError if a record is missing, or if none arrives for 60 s.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "bench",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 2,
            "queued.max.messages.kbytes": 1_048_576,
            "queued.min.messages": 1_000_000,
            "max.partition.fetch.bytes": fetch_bytes,
        }
    )
    with closing(consumer):
        started_s = time.monotonic()
        consumer.assign([TopicPartition(topic, 0, offsets.start_offset)])
        next_offset = offsets.start_offset
        while next_offset < offsets.end_offset:
            missing = offsets.end_offset - next_offset
            records = consumer.consume(min(_BATCH, missing), timeout=_TIMEOUT_S)
            if not records:
                raise RuntimeError(
                    f"cannot read all records: none arrived for {_TIMEOUT_S} s (missing={missing})"
                )
            last = records[-1]
            next_offset += len(records)
            if last.error() is not None or last.offset() != next_offset - 1:
                raise RuntimeError(
                    "cannot read all records: the consumer received an error or another offset "
                    f"(offset={last.offset()} expected={next_offset - 1} error={last.error()})"
                )
        return ConsumeRun(started_s=started_s, ended_s=time.monotonic())
