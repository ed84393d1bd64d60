"""Reading with plain consumers."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, Message, TopicPartition

_DEADLINE_S = 60.0


def consumer(bootstrap_servers: str, settings: Mapping[str, str | int] | None = None) -> Consumer:
    """Return a consumer without a group, which fails instead of resetting its offset."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            **(settings or {}),
        }
    )


def assigned(
    bootstrap_servers: str,
    topic: str,
    *,
    offset: int = 0,
    partitions: int = 1,
    settings: Mapping[str, str | int] | None = None,
) -> Consumer:
    """Return a consumer that will begin at `offset` of each partition."""
    reader = consumer(bootstrap_servers, settings)
    reader.assign([TopicPartition(topic, each, offset) for each in range(partitions)])
    return reader


def read_from(
    bootstrap_servers: str,
    topic: str,
    *,
    offset: int = 0,
    partitions: int = 1,
    settings: Mapping[str, str | int] | None = None,
) -> list[Message]:
    """Return a topic's messages from `offset` to the end of each partition, as received."""
    reader = assigned(
        bootstrap_servers, topic, offset=offset, partitions=partitions, settings=settings
    )
    try:
        return to_the_end(reader, partitions)
    finally:
        reader.close()


def to_the_end(reader: Consumer, partitions: int) -> list[Message]:
    """Return what a consumer reads up to the end of `partitions` partitions."""
    read: list[Message] = []
    ended: set[int] = set()
    deadline = time.monotonic() + _DEADLINE_S
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"read {len(read)}, ended {ended}"
        message = reader.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is None:
            read.append(message)
        elif error.name() == "_PARTITION_EOF":
            ended.add(message.partition() or 0)
        else:
            raise AssertionError(f"{error.name()}: {error.str()}")
    return read
