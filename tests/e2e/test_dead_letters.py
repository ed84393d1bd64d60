"""Segments that cannot be deleted become dead letters, and other work continues."""

from __future__ import annotations

import json
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from rlmm import codec
from rlmm.dead_letters import dead_letter
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.events.segment import SegmentEvent
from rsm.segment.metadata import SegmentState
from tests.e2e.broker_host import BrokerHost
from tests.e2e.refusing_store_manager import REASON
from tests.e2e.tiered_log import TieredLog
from tests.services.waiting import wait_until

RETENTION_MS = 3_600_000
MAX_ATTEMPTS = 2


def test_deletion_when_it_fails_too_often_then_becomes_a_letter_and_others_continue(
    host: BrokerHost, log: TieredLog, topic_name: str
) -> None:
    """Scenario 73: it has keys, a reason, attempts, and its DELETE_SEGMENT_STARTED's offset.

    `rlm dlq retry` finishes the deletion.
    """
    letters_topic = f"{topic_name}-letters"
    host.set(
        **{
            "remote.delete.max.attempts": str(MAX_ATTEMPTS),
            "remote.delete.dead.letter.topic": letters_topic,
        }
    )
    log.produce(2, timestamp_ms=round(time.time() * 1000) - 2 * RETENTION_MS)
    log.produce(2)
    refused, deleted = log.base_offsets()[:2]
    arguments = ("--config", str(host.config_path), "--refuse", f"/{refused:020d}-")

    with host.metadata() as metadata:
        log.set_policy(metadata)
        with host.started("-m", "tests.e2e.refusing_store_manager", *arguments):
            log.wait_tiered(metadata)
            log.set_policy(metadata, retention_ms=RETENTION_MS)
            wait_until(
                lambda: (
                    [
                        record.is_dead_lettered
                        for record in metadata.list_remote_log_segments(
                            log.partition, states=(SegmentState.DELETE_SEGMENT_STARTED,)
                        )
                    ]
                    == [True]
                ),
                describe="the one segment left in deletion is dead-lettered",
            )

        (left,) = log.in_states(metadata, SegmentState.DELETE_SEGMENT_STARTED)
        (gone,) = log.in_states(metadata, SegmentState.DELETE_SEGMENT_FINISHED)
    dead_letter = _only_letter(host, letters_topic)
    assert (left.offsets.start_offset, gone.offsets.start_offset) == (refused, deleted)
    assert dead_letter.metadata == left
    assert set(dead_letter.object_keys) == set(left.object_keys)
    assert dead_letter.attempts == MAX_ATTEMPTS
    assert REASON in dead_letter.reason
    assert _event_at(host, dead_letter) == left
    assert set(dead_letter.object_keys) <= log.object_keys()
    listed = _rows(host, "list", topic_name)
    would = _rows(host, "retry", topic_name, "--dry-run")
    assert [(row["state"], row["base_offset"]) for row in listed] == [("OPEN", refused)]
    assert would == listed
    assert set(dead_letter.object_keys) <= log.object_keys()

    (retried,) = _rows(host, "retry", topic_name, "--yes")

    assert retried["state"] == "DONE"
    assert not set(dead_letter.object_keys) & log.object_keys()
    assert [row["state"] for row in _rows(host, "list", topic_name, "--all")] == ["DONE"]


def _rows(host: BrokerHost, *arguments: str) -> list[dict[str, object]]:
    """Return the rows that `rlm dlq` prints."""
    rows: list[dict[str, object]] = json.loads(host.rlm("dlq", *arguments, "--json"))[
        "dead_letters"
    ]
    return rows


def _only_letter(host: BrokerHost, topic: str) -> DeadLetter:
    (message,) = _read(host, topic, range(10))
    return dead_letter.decode(message.value() or b"")


def _event_at(host: BrokerHost, dead_letter: DeadLetter) -> object:
    """Return the segment metadata in the metadata record that a dead letter names."""
    assert dead_letter.delete_started is not None
    topic = host.config.metadata.topic_name
    for message in _read(host, topic, [dead_letter.delete_started.partition]):
        if message.offset() == dead_letter.delete_started.offset:
            event = codec.decode(message.key() or b"", message.value() or b"")
            assert isinstance(event, SegmentEvent)
            assert event.metadata.state is SegmentState.DELETE_SEGMENT_STARTED
            return event.metadata
    raise AssertionError("the dead letter names no record of the metadata topic")


def _read(host: BrokerHost, topic: str, partitions: range | list[int]) -> list[Message]:
    """Return all records of these partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": host.cluster.bootstrap_servers,
            "enable.partition.eof": True,
            "group.id": "unused",
        }
    )
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
    found: list[Message] = []
    ends: set[int | None] = set()

    def is_read() -> bool:
        for message in consumer.consume(1000, 0.1):
            if message.error() is None:
                found.append(message)
            else:
                ends.add(message.partition())
        return len(ends) == len(partitions)

    try:
        wait_until(is_read, describe=f"{topic} is read to its end")
    finally:
        consumer.close()
    return found
