"""A real broker's files are read, checked and rebuilt byte for byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicCollection, TopicPartition

from rsm.segment.batches.batch import BatchHeader, scan_batches
from rsm.segment.batches.index_builder import IndexBuilder, matches_log
from rsm.segment.batches.records import Record, decode_control_record, decode_records
from rsm.segment.batches.scanner import SegmentScanner
from rsm.segment.checkpoints import (
    parse_leader_epochs,
    parse_meta_properties,
    parse_partition_metadata,
)
from rsm.segment.epochs import Lineage
from rsm.segment.ids import id_to_text
from rsm.segment.indexes import OffsetIndex, TimeIndex, TransactionIndex, cut_preallocated
from rsm.segment.producer_snapshot import is_whole_snapshot
from rsm.segment.ranges import OffsetRange
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.waiting import wait_until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_TIMESTAMP_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def partition_dir(kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a partition with many rolled segments, every codec, and transactions."""
    topic = tmp_path_factory.mktemp("segment-formats").name
    kafka.create_topic(topic, config={"segment.bytes": "1048576", "retention.ms": "-1"})
    for codec in CODECS:
        produce(kafka, topic, codec)
    produce_transactions(kafka, topic)
    produce(kafka, topic, "none")
    return kafka.broker.log_dirs[0] / f"{topic}-0"


def produce(kafka: KafkaCluster, topic: str, codec: str) -> None:
    """Produce about 0.8 MiB in batches of many sizes, with timestamps out of order."""
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "compression.type": codec,
            "batch.num.messages": 7,
            "linger.ms": 1,
        }
    )
    noise = random.Random(codec)
    for number in range(1_500):
        producer.produce(
            topic,
            key=None if number % 5 == 0 else b"key-%d" % number,
            value=None if number % 7 == 0 else noise.randbytes(number % 1_200),
            timestamp=BASE_TIMESTAMP_MS + number * 37 % 2_000,
            headers=[("codec", codec.encode()), ("empty", None)] if number % 3 == 0 else [],
        )
    assert producer.flush(30) == 0


def produce_transactions(kafka: KafkaCluster, topic: str) -> None:
    """Produce ten transactions, every other one aborted."""
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{topic}-writer"}
    )
    producer.init_transactions(30)
    for number in range(10):
        producer.begin_transaction()
        for _ in range(20):
            producer.produce(topic, value=b"t%d" % number)
        assert producer.flush(30) == 0
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def base_offsets(partition_dir: Path) -> list[int]:
    return sorted(int(each.stem) for each in partition_dir.glob("*.log"))


def rolled(partition_dir: Path) -> list[OffsetRange]:
    bases = base_offsets(partition_dir)
    return [OffsetRange(start_offset=start, end_offset=end) for start, end in pairwise(bases)]


def content(partition_dir: Path, offsets: OffsetRange, suffix: str) -> bytes:
    return (partition_dir / f"{offsets.start_offset:020}{suffix}").read_bytes()


def headers(log: bytes) -> list[BatchHeader]:
    return [header for _, header in scan_batches(memoryview(log))]


def lineage(partition_dir: Path) -> Lineage:
    file = partition_dir / "leader-epoch-checkpoint"
    return parse_leader_epochs(file.read_bytes(), file=file.name)


def test_scanner_when_fed_rolled_segments_then_all_of_each_is_valid(partition_dir: Path) -> None:
    """R21: each batch's CRC and leader epoch, as a broker wrote them."""
    assert len(rolled(partition_dir)) >= 3
    for offsets in rolled(partition_dir):
        log = content(partition_dir, offsets, ".log")
        scanner = SegmentScanner(base_offset=offsets.start_offset, lineage=lineage(partition_dir))
        for start in range(0, len(log), 10_007):
            scanner.feed(memoryview(log)[start : start + 10_007])

        scan = scanner.finish()

        assert scan.valid_bytes == len(log)
        assert scan.offsets == offsets


def test_builder_when_given_rolled_segments_then_indexes_equal_the_brokers_files(
    partition_dir: Path,
) -> None:
    for offsets in rolled(partition_dir):
        builder = IndexBuilder(base_offset=offsets.start_offset)

        for header in headers(content(partition_dir, offsets, ".log")):
            builder.append(header)

        assert builder.offset_index().to_bytes() == content(partition_dir, offsets, ".index")
        assert builder.time_index().to_bytes() == content(partition_dir, offsets, ".timeindex")


def test_indexes_when_a_broker_wrote_them_then_they_parse_and_match_their_log(
    partition_dir: Path,
) -> None:
    for offsets in rolled(partition_dir):
        log = content(partition_dir, offsets, ".log")

        offset_index = OffsetIndex.parse(
            content(partition_dir, offsets, ".index"), offsets=offsets, log_bytes=len(log)
        )
        time_index = TimeIndex.parse(content(partition_dir, offsets, ".timeindex"), offsets=offsets)

        assert len(offset_index) > 10
        assert matches_log(offset_index, time_index, headers(log))


def test_indexes_when_compared_with_another_segments_log_then_they_do_not_match(
    partition_dir: Path,
) -> None:
    first, second, *_ = rolled(partition_dir)
    offset_index = OffsetIndex(
        base_offset=first.start_offset, data=content(partition_dir, first, ".index")
    )
    time_index = TimeIndex(
        base_offset=first.start_offset, data=content(partition_dir, first, ".timeindex")
    )

    other = headers(content(partition_dir, second, ".log"))

    assert not matches_log(offset_index, time_index, other)


def test_cut_preallocated_when_segment_is_active_then_entries_remain(partition_dir: Path) -> None:
    active = partition_dir / f"{base_offsets(partition_dir)[-1]:020}"
    preallocated = active.with_suffix(".index").read_bytes()
    log = active.with_suffix(".log").read_bytes()
    builder = IndexBuilder(base_offset=int(active.name))

    for header in headers(log):
        builder.append(header)

    built = builder.offset_index().to_bytes()
    assert len(preallocated) > 1_000_000
    assert cut_preallocated(preallocated, entry_bytes=8) == built


def test_transaction_indexes_when_some_were_aborted_then_each_is_there(
    partition_dir: Path,
) -> None:
    """R19: a segment's own index has its aborted transactions."""
    bases = base_offsets(partition_dir)
    ends = [*bases[1:], 1 << 62]
    found = [
        transaction
        for start, end in zip(bases, ends, strict=True)
        for transaction in TransactionIndex.parse(
            read_or_empty(partition_dir / f"{start:020}.txnindex"),
            offsets=OffsetRange(start_offset=start, end_offset=end),
        ).transactions
    ]

    markers = [
        decode_control_record(header, batch)
        for header, batch in all_batches(partition_dir)
        if header.is_control
    ]
    assert [each.last_offset for each in found] == [m.offset for m in markers if m.type == 0]
    assert len(found) == 5
    assert {each.producer_id for each in found} == {each.producer_id for each in markers}


def test_snapshots_when_a_broker_wrote_them_then_whole(partition_dir: Path) -> None:
    snapshots = list(partition_dir.glob("*.snapshot"))

    assert snapshots
    assert all(is_whole_snapshot(each.read_bytes()) for each in snapshots)


def test_records_when_decoded_from_the_files_then_they_are_what_a_consumer_gets(
    kafka: KafkaCluster, partition_dir: Path
) -> None:
    found = [
        record
        for header, batch in all_batches(partition_dir)
        for record in decode_records(header, batch)
    ]

    assert len(found) == 1_500 * (len(CODECS) + 1) + 200
    assert [comparable(each) for each in found] == [
        consumed(each) for each in consume(kafka, partition_dir, len(found))
    ]


def test_checkpoints_when_a_broker_wrote_them_then_they_are_read(
    kafka: KafkaCluster, partition_dir: Path
) -> None:
    log_dir = kafka.broker.log_dirs[0]
    topic = partition_dir.name.removesuffix("-0")
    meta = log_dir / "meta.properties"

    assert lineage(partition_dir) == Lineage.of((0, 0))
    topic_id = parse_partition_metadata(
        (partition_dir / "partition.metadata").read_bytes(), file="partition.metadata"
    )
    admin = admin_client(
        kafka.bootstrap_servers
    )  # keeps the client alive until its requests have ended
    described = admin.describe_topics(TopicCollection([topic]))
    # librdkafka spells ids in plain base64, Kafka in its URL-safe form.
    spelled = str(described[topic].result(30).topic_id).replace("+", "-").replace("/", "_")
    assert id_to_text(topic_id) == spelled
    identity = parse_meta_properties(meta.read_bytes(), file=meta.name)
    assert (identity.cluster_id, identity.node_id) == (kafka.cluster_id, kafka.broker.node_id)
    assert identity.directory_id is not None


def read_or_empty(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def all_batches(partition_dir: Path) -> Iterator[tuple[BatchHeader, memoryview]]:
    for base_offset in base_offsets(partition_dir):
        log = memoryview((partition_dir / f"{base_offset:020}.log").read_bytes())
        for position, header in scan_batches(log):
            yield header, log[position : position + header.length_bytes]


def consume(kafka: KafkaCluster, partition_dir: Path, count: int) -> list[Message]:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "none",
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(partition_dir.name.removesuffix("-0"), 0, 0)])
    messages: list[Message] = []

    def has_all() -> bool:
        messages.extend(consumer.consume(5_000, 1.0))
        return len(messages) >= count

    try:
        wait_until(has_all, 60.0, f"{count} records")
    finally:
        consumer.close()
    return messages


def comparable(record: Record) -> tuple[object, ...]:
    headers = list(record.headers) or None
    return record.offset, record.timestamp_ms, record.key, record.value, headers


def consumed(message: Message) -> tuple[object, ...]:
    assert message.error() is None
    _, timestamp_ms = message.timestamp()
    return message.offset(), timestamp_ms, message.key(), message.value(), message.headers()
