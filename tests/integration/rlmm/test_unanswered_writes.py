"""A broker does not respond to writes: a process finds out their result before it writes again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.codec import encode
from rlmm.known_writes import barrier_key
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.positions import ReadPosition, TopicRecord
from rlmm.state.log_starts import LogStart
from rlmm.topic.event_topic import UnknownResultError
from rlmm.topic.kafka import KafkaTimeouts, KafkaTopic
from rlmm.topic.shape import TopicSettings
from rsm.segment.errors import RetriableError
from rsm.system_clock import SystemClock
from tests.metadata_builder import ORDERS, OWNER, claim, trim
from tests.services.kafka import KafkaCluster
from tests.services.provider import ServiceProvider
from tests.services.waiting import wait_until

TIMEOUTS = KafkaTimeouts(request_ms=2_000, produce_ms=500, delivery_ms=2_000)
SHAPE = TopicSettings(partition_count=1, replication_factor=1)


def test_publish_when_the_broker_hangs_then_nothing_is_written_twice_and_all_is_known_afterwards(
    services: ServiceProvider,
    tmp_path: Path,
) -> None:
    """Scenario 119: the broker may still write the received records when it continues."""
    first, second = trim(10), trim(20)
    with services.kafka(tmp_path / "kafka") as cluster:
        manager = TopicBasedRemoteLogMetadataManager(
            KafkaTopic(client_of(cluster), SHAPE, TIMEOUTS),
            MetadataCache(MemoryStore()),
            SystemClock(),
        )
        manager.start()
        assert manager.wait_ready(60_000).is_ready
        assert manager.publish(claim()).accepted
        with hanging(cluster.broker.pid):
            with pytest.raises(UnknownResultError, match="it may still arrive"):
                manager.publish(first)
            with pytest.raises(UnknownResultError, match="result of an earlier write is not known"):
                manager.publish(trim(15))

        wait_until(lambda: manager.publish(claim()).accepted, 60.0, despite=RetriableError)

        assert manager.publish(second).accepted
        assert manager.partition_state(ORDERS).trims == (LogStart(20, OWNER.leader_epoch),)
        manager.close()
        records = records_of(cluster)
    keys = [record.key for record in records]
    # The superseded record has a tombstone, too.
    written = [record.key for record in records if record.value is not None]
    assert written.count(encode(second).key) == 1
    assert written.count(encode(first).key) <= 1
    assert barrier_key(encode(first).key) in keys[: keys.index(encode(second).key)]


@contextmanager
def hanging(pid: int) -> Iterator[None]:
    """Stop the broker with SIGSTOP until the block ends: its sockets stay open and fill up."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: is_stopped(pid), describe="every thread has stopped")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    """Return whether all threads are stopped; a signal stops them one by one."""
    states = (thread.joinpath("stat").read_text() for thread in Path(f"/proc/{pid}/task").iterdir())
    return all(state.rpartition(")")[2].split()[0] == "T" for state in states)


def client_of(cluster: KafkaCluster) -> dict[str, str]:
    return {"bootstrap.servers": cluster.bootstrap_servers, "reconnect.backoff.max.ms": "500"}


def records_of(cluster: KafkaCluster) -> list[TopicRecord]:
    """Return all records of the metadata topic, in order."""
    topic = KafkaTopic(client_of(cluster), SHAPE, TIMEOUTS)
    topic.ensure(create=False)
    end_offset = topic.end_offsets([0])[0]
    topic.assign({0: ReadPosition(offset=0)})
    records: list[TopicRecord] = []
    while topic.positions()[0] < end_offset:
        records += topic.poll(max_records=100, timeout_ms=500)
    topic.close()
    return records
