"""The log source with a real broker: it opens exactly what the broker wrote."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition

from rlm.facts.local_log import LocalLog
from rlm.source.logdir import LogDirSource
from rlm.source.meta_properties import BrokerIdentity, read_broker_identity
from rsm.segment.batches.batch import scan_batches
from rsm.segment.batches.index_builder import IndexBuilder
from rsm.segment.ids import TopicIdPartition
from rsm.segment.indexes import TransactionIndex
from rsm.segment.local_segment import LogSegmentData
from rsm.segment.producer_snapshot import is_whole_snapshot
from tests.log_dir_builder import ManualClock, segment_file
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.provider import ServiceProvider
from tests.services.waiting import wait_until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPIC = "written-in-every-way"
VALUE_BYTES = 4000
FILE_TIME_MS = 20  # a file's time may be that of the kernel's previous clock tick


@pytest.fixture(scope="module")
def written(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    """A broker with a topic of several segments, five codecs, finished and aborted transactions."""
    cluster = services.kafka(tmp_path_factory.mktemp("logdir"), log_dirs_per_broker=2)
    with cluster:
        cluster.create_topic(TOPIC, config={"segment.bytes": str(1 << 20)})
        for codec in CODECS:
            _produce(cluster, 400, codec=codec, seed=codec)
        _produce(cluster, 300, transaction="commit", seed="commit")
        _produce(cluster, 700, transaction="abort", seed="abort")  # the transaction spans two rolls
        _produce(cluster, 300, codec="zstd", seed="end")
        yield cluster


@pytest.fixture
def source(written: KafkaCluster) -> LogDirSource:
    return LogDirSource(written.broker.log_dirs, clock=ManualClock())


@pytest.fixture
def partition(source: LogDirSource) -> TopicIdPartition:
    (found,) = [each for each in source.partitions() if each.topic == TOPIC]
    return found


def test_partitions_of_a_real_broker_then_with_the_topics_id(
    written: KafkaCluster, partition: TopicIdPartition
) -> None:
    admin = admin_client(
        written.bootstrap_servers
    )  # keeps the client alive until its requests have ended

    topic_id = admin.describe_topics(TopicCollection([TOPIC]))[TOPIC].result(30.0).topic_id

    bits = (topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits())

    most, least = divmod(partition.topic_id.int, 1 << 64)
    assert (most, least) == tuple(each % (1 << 64) for each in bits)


def test_identity_of_a_real_broker_then_its_node_and_cluster(written: KafkaCluster) -> None:
    identity = read_broker_identity(written.broker.log_dirs)

    assert identity == BrokerIdentity(node_id=1, cluster_id=written.cluster_id)


def test_rolled_segments_of_a_real_topic_then_all_open_as_the_broker_wrote_them(
    written: KafkaCluster, source: LogDirSource, partition: TopicIdPartition
) -> None:
    """Scenario 1 with real files: logs, indexes, transaction index and snapshot byte for byte."""
    directory = _partition_dir(written)
    log = source.local_log(partition)
    assert len(log.rolled) >= 5

    for data in _open_all(written, source, partition, log):
        base_offset = data.offsets.start_offset
        content = b"".join(bytes(chunk) for chunk in data.log.chunks())
        companions = data.companions
        assert content == _read(directory, base_offset, "log")
        assert companions.offset_index == _read(directory, base_offset, "index")
        assert companions.time_index == _read(directory, base_offset, "timeindex")
        assert companions.transaction_index == _read(directory, base_offset, "txnindex")
        assert companions.producer_snapshot == _read(directory, data.offsets.end_offset, "snapshot")
        assert companions.producer_snapshot is not None
        assert is_whole_snapshot(companions.producer_snapshot)
        assert companions.lineage == log.checkpoint


def test_rolled_segments_of_a_real_topic_then_listing_agrees_with_their_batches(
    written: KafkaCluster, source: LogDirSource, partition: TopicIdPartition
) -> None:
    log = source.local_log(partition)

    for segment in log.rolled:
        content = _read(_partition_dir(written), segment.offsets.start_offset, "log") or b""
        headers = [header for _, header in scan_batches(memoryview(content))]
        assert segment.size_bytes == len(content)
        assert segment.offsets.end_offset == headers[-1].next_offset
        assert segment.max_timestamp_ms == max(each.max_timestamp_ms for each in headers)


def test_rolled_segment_of_old_records_then_listing_knows_when_the_broker_rolled_it(
    written: KafkaCluster, source: LogDirSource
) -> None:
    """PIP-17's offloadTimeInMinutes needs that time; neither records nor the last write show it."""
    topic, year_2001_ms = "rolled-by-time", 10**12
    written.create_topic(topic, config={"segment.ms": "1000", "retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": written.bootstrap_servers})
    producer.produce(topic, b"first", timestamp=year_2001_ms)
    assert producer.flush(30.0) == 0
    written_ms = _now_ms()
    wait_until(lambda: _now_ms() > written_ms + 1_000, describe="a second has passed")

    producer.produce(topic, b"second", timestamp=year_2001_ms + 10_000)
    started_ms = _now_ms()
    assert producer.flush(30.0) == 0

    (partition,) = [each for each in source.partitions() if each.topic == topic]
    (segment,) = source.local_log(partition).rolled
    assert segment.max_timestamp_ms == year_2001_ms
    assert segment.rolled_ms is not None
    assert started_ms - FILE_TIME_MS <= segment.rolled_ms <= _now_ms()


def test_indexes_built_from_the_batches_of_a_real_topic_then_equal_the_brokers(
    written: KafkaCluster, source: LogDirSource, partition: TopicIdPartition
) -> None:
    """Scenario 17: a rebuilt index equals the one that the broker would have written."""
    directory = _partition_dir(written)

    for segment in source.local_log(partition).rolled:
        base_offset = segment.offsets.start_offset
        builder = IndexBuilder(base_offset=base_offset)
        for _, header in scan_batches(memoryview(_read(directory, base_offset, "log") or b"")):
            builder.append(header)
        assert builder.offset_index().to_bytes() == _read(directory, base_offset, "index")
        assert builder.time_index().to_bytes() == _read(directory, base_offset, "timeindex")


def test_aborted_transaction_over_several_real_segments_then_with_each_of_them(
    written: KafkaCluster, source: LogDirSource, partition: TopicIdPartition
) -> None:
    """R19: a segment has the abort, although the marker is in a later segment."""
    log = source.local_log(partition)
    opened = _open_all(written, source, partition, log)

    carried = {data.offsets: data.companions.aborted_transactions for data in opened}

    (aborted,) = {each for several in carried.values() for each in several}
    overlapped = [offsets for offsets, several in carried.items() if several]
    assert len(overlapped) >= 2
    assert overlapped == [
        offsets
        for offsets in carried
        if aborted.first_offset < offsets.end_offset and offsets.start_offset <= aborted.last_offset
    ]
    assert aborted in _all_aborted(written, log)


def _produce(
    cluster: KafkaCluster,
    count: int,
    *,
    codec: str = "none",
    transaction: str | None = None,
    seed: str,
) -> None:
    settings: dict[str, str | int] = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "compression.type": codec,
        "batch.size": 20_000,
    }
    if transaction:
        settings["transactional.id"] = transaction
    producer = Producer(settings)
    if transaction:
        producer.init_transactions(30.0)
        producer.begin_transaction()
    generator = random.Random(seed)
    for number in range(count):
        value = generator.randbytes(
            VALUE_BYTES
        )  # incompressible, so that each codec fills several segments
        producer.produce(TOPIC, key=b"%d" % number, value=value, headers={"h": b"v"}, partition=0)
    assert producer.flush(60.0) == 0
    if transaction == "commit":
        producer.commit_transaction(30.0)
    elif transaction == "abort":
        producer.abort_transaction(30.0)


def _open_all(
    cluster: KafkaCluster, source: LogDirSource, partition: TopicIdPartition, log: LocalLog
) -> Iterator[LogSegmentData]:
    last_stable_offset = _last_stable_offset(cluster)
    for segment in log.rolled:
        with source.open_segment(partition, segment, log.checkpoint, last_stable_offset) as opened:
            assert opened.max_timestamp_ms == segment.max_timestamp_ms
            yield opened.data
            opened.verify_unchanged()


def _last_stable_offset(cluster: KafkaCluster) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "unused",
            "isolation.level": "read_committed",
        }
    )
    try:
        _, offset = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30.0)
        return offset
    finally:
        consumer.close()


def _all_aborted(cluster: KafkaCluster, log: LocalLog) -> list[object]:
    found: list[object] = []
    for segment in log.rolled:
        content = _read(_partition_dir(cluster), segment.offsets.start_offset, "txnindex")
        index = TransactionIndex.parse(content or b"", offsets=segment.offsets)
        found.extend(index.transactions)
    return found


def _partition_dir(cluster: KafkaCluster) -> Path:
    (directory,) = (
        log_dir / f"{TOPIC}-0"
        for log_dir in cluster.broker.log_dirs
        if (log_dir / f"{TOPIC}-0").exists()
    )
    return directory


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _read(directory: Path, base_offset: int, kind: str) -> bytes | None:
    path = segment_file(directory, base_offset, kind)
    return path.read_bytes() if path.exists() else None
