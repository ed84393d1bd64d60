"""Through a gateway: log starts that moved, stored objects that are damaged, missing or slow.

The stored segments have different layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from rlm.gateway.model.counters import RemoteCount
from rlmm.events.log_start import LogStartAdvanced
from rlmm.state.anomalies import AnomalyKind
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.storage.filesystem.storage import FilesystemChunkStorage
from rsm.storage.settings import FaultPlan
from rsm.storage.wrappers.faulty import FaultyChunkStorage
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.blocking_storage import BlockingStorage
from tests.integration.rlm.gateway.mixed_layouts import mixed_layouts
from tests.integration.rlm.gateway.reading import assigned, read_from, to_the_end
from tests.integration.rlm.gateway.running_gateway import RunningGateway, running_gateway
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.services.kafka import KafkaCluster
from tests.services.waiting import wait_until


def test_consumer_when_its_offset_is_below_the_log_start_then_it_is_out_of_range(
    kafka: KafkaCluster, host: BrokerHost, topic_name: str
) -> None:
    """Scenario 47, R15, R17: records above the log start are read as before."""
    topic = _tiered(kafka, host, topic_name, segments=3)
    with running_gateway(host) as gateway:
        partition = topic.partition()
        owner = gateway.metadata.partition_state(partition).owner
        assert owner is not None
        moved = LogStartAdvanced(
            event_id=uuid4(),
            topic_id_partition=partition,
            writer=owner,
            offset=50,
            reason="a test",
        )
        assert gateway.metadata.publish(moved).accepted
        with pytest.raises(AssertionError, match="_AUTO_OFFSET_RESET"):
            read_from(gateway.bootstrap_servers, topic.name, offset=49)
        read = read_from(gateway.bootstrap_servers, topic.name, offset=50)
    assert [message.value() for message in read] == topic.values[0][50:]


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "anomaly"),
    [
        pytest.param(_flip, AnomalyKind.CORRUPT, id="corrupt"),
        pytest.param(lambda path: path.unlink(), AnomalyKind.MISSING, id="missing"),
    ],
)
def test_consumer_when_an_object_is_damaged_then_only_its_partition_does_not_advance(
    kafka: KafkaCluster,
    host: BrokerHost,
    topic_name: str,
    damage: Callable[[Path], None],
    anomaly: AnomalyKind,
) -> None:
    """Scenarios 62, 63: no offset is skipped, no wrong byte is served, the others are read."""
    topic = TieredTopic(kafka, topic_name, partitions=2)
    topic.produce(4, partition=0)
    topic.produce(3, partition=1)
    with mixed_layouts(host):
        topic.tier(host)
    with running_gateway(host) as gateway:
        segment = _second_segment(gateway, topic)
        damage(host.store / segment.objects[0].key)
        reader = assigned(gateway.bootstrap_servers, topic.name, partitions=2)
        read = to_the_end(reader, 1)
        wait_until(lambda: anomaly.label in {each.kind for each in gateway.anomalies.counts()})
        reader.close()
    whole = [message.value() for message in read if message.partition() == 1]
    cut = [message.value() for message in read if message.partition() == 0]
    assert whole == topic.values[1]
    assert segment.offsets.start_offset <= len(cut) < segment.offsets.end_offset
    assert cut == topic.values[0][: len(cut)]
    assert gateway.counts.remote[RemoteCount.STORAGE_ERROR] > 0
    assert gateway.counts.remote[RemoteCount.OUT_OF_RANGE] == 0


def test_consumer_when_the_store_fails_now_and_then_then_reads_all_of_it_and_nothing_else(
    kafka: KafkaCluster, host: BrokerHost, topic_name: str
) -> None:
    """Scenario 111: a client that retries does not get later records from the broker instead."""
    topic = _tiered(kafka, host, topic_name, segments=4)
    plan = FaultPlan(fail_share=0.6, flip_share=0.1, seed=111)
    store = FaultyChunkStorage(FilesystemChunkStorage(host.store), plan)
    with running_gateway(host, storage=store) as gateway:
        read = read_from(
            gateway.bootstrap_servers, topic.name, settings={"fetch.error.backoff.ms": 10}
        )
    assert [message.offset() for message in read] == list(range(len(read)))
    assert [message.value() for message in read] == topic.values[0]
    assert gateway.counts.remote[RemoteCount.STORAGE_ERROR] > 0
    assert gateway.counts.remote[RemoteCount.OUT_OF_RANGE] == 0


def test_consumer_when_the_store_is_slower_than_it_waits_then_the_read_continues(
    kafka: KafkaCluster, host: BrokerHost, topic_name: str
) -> None:
    """Scenario 58: empty responses in time, one read of the store, and then the records."""
    topic = _tiered(kafka, host, topic_name, segments=3)
    store = BlockingStorage(host.store)
    with running_gateway(host, storage=store) as gateway:
        reader = assigned(gateway.bootstrap_servers, topic.name, settings={"fetch.wait.max.ms": 50})
        wait_until(lambda: gateway.counts.remote[RemoteCount.READING] > 2)
        started = store.reads
        wait_until(lambda: gateway.counts.remote[RemoteCount.READING] > 8)
        assert store.reads == started
        assert reader.poll(0) is None
        store.release()
        read = to_the_end(reader, 1)
        reader.close()
    store.close()
    assert [message.value() for message in read] == topic.values[0]
    assert gateway.counts.remote[RemoteCount.STORAGE_ERROR] == 0


def test_gateway_when_a_client_leaves_during_a_read_then_nothing_of_it_is_left(
    kafka: KafkaCluster, host: BrokerHost, topic_name: str
) -> None:
    """Scenario 59: the read finishes into the cache, which serves the next client."""
    topic = _tiered(kafka, host, topic_name, segments=3)
    store = BlockingStorage(host.store)
    with running_gateway(host, storage=store) as gateway:
        reader = assigned(gateway.bootstrap_servers, topic.name)
        wait_until(lambda: store.reads > 0)
        reader.close()
        wait_until(lambda: gateway.counts.connections == 0)
        store.release()
        wait_until(lambda: gateway.cache.state().reading_count == 0)
        assert gateway.cache.state().waiting_count == 0
        read = read_from(gateway.bootstrap_servers, topic.name)
    store.close()
    assert [message.value() for message in read] == topic.values[0]


def _tiered(kafka: KafkaCluster, host: BrokerHost, name: str, *, segments: int) -> TieredTopic:
    """Create and tier a topic of one partition."""
    topic = TieredTopic(kafka, name)
    topic.produce(segments)
    with mixed_layouts(host):
        topic.tier(host)
    return topic


def _second_segment(gateway: RunningGateway, topic: TieredTopic) -> RemoteLogSegmentMetadata:
    """Return the second segment of partition 0; the first one has another layout."""
    first, second, *_ = gateway.metadata.list_remote_log_segments(
        topic.partition(0), states=(SegmentState.COPY_SEGMENT_FINISHED,)
    )
    assert first.metadata.layout != second.metadata.layout
    return second.metadata
