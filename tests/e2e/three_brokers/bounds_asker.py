"""A client that asks for the bounds of a topic's partitions again and again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.e2e.three_brokers.written_topic import WrittenTopic

_TIMEOUT_S = 10.0
_ROUNDS = 5


@contextmanager
def asking_for_bounds(bootstrap_servers: str, topic: WrittenTopic) -> Iterator[None]:
    """Ask during the block, often as a new client; none is told other bounds than the log's.

    Errors are no answers: it may ask again.
    """
    wanted = {number: (0, records[-1].offset + 1) for number, records in topic.records.items()}
    told: list[tuple[int, tuple[int, int]]] = []
    stop = Event()

    def ask() -> None:
        while not stop.is_set():
            told.extend(_told(bootstrap_servers, topic.name, sorted(wanted)))

    asker = Thread(target=ask)
    asker.start()
    try:
        yield
    finally:
        stop.set()
        asker.join()
    assert told
    wrong = [(number, bounds) for number, bounds in told if bounds != wanted[number]]
    assert not wrong, f"{wrong} of {len(told)} instead of {wanted}"


def _told(
    bootstrap_servers: str, topic: str, partitions: list[int]
) -> Iterator[tuple[int, tuple[int, int]]]:
    config = {"bootstrap.servers": bootstrap_servers, "group.id": "none"}
    with closing(Consumer(config)) as consumer:
        for number in partitions * _ROUNDS:
            place = TopicPartition(topic, number)
            try:
                yield number, consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
            except KafkaException:
                continue
