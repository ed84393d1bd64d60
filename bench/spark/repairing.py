"""Measures the repair job, and compares it with a loop of DeleteObjects in the same bucket."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import boto3
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from bench.measurement import Measurement, at_least, of_runs, ratios
from bench.metadata.topic import create_topic
from rlmm.codec import encode
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.dead_letters.dead_letter import encode as encode_dead_letter
from rlmm.events.claim import LeadershipClaimed
from rlmm.events.event import Event
from rlmm.events.segment import SegmentEvent
from rlmm.partitioner import event_partition
from rlmm.topic.shape import TopicSettings
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.segment.epochs import Lineage
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject, Writer
from rsm.segment.ranges import OffsetRange
from spark_tools.connection import ClusterConnection
from spark_tools.kafka_connector import connector_options
from spark_tools.repair.job import DEFAULT_BATCH_DEAD_LETTER_COUNT, RepairJob, RepairSettings
from spark_tools.snapshot import open_snapshot
from tests.services.kafka import KafkaCluster
from tests.services.s3 import S3Server

_BUCKET = "dead-letters"
_METADATA_PARTITIONS = 4
_KEYS_PER_REQUEST = 1000
_PARTITIONS = 64
_WARMING_DEAD_LETTERS = 2
_KEYS = ObjectKeys()
_CONTENT = b"x"
_WRITER = Writer(broker_id=1, leader_epoch=0, incarnation=uuid4())


def measure_repairing(
    spark: SparkSession,
    cluster: KafkaCluster,
    server: S3Server,
    scratch: Path,
    *,
    dead_letters: int,
    runs: int,
) -> list[Measurement]:
    """Delete as many objects with the repair job as with a plain loop, in alternating runs.

    The repair of one dead letter measures Spark's start time. Before it, an unmeasured repair
    starts the session's Python workers.
    """
    server.create_bucket(_BUCKET)
    _repair(spark, cluster, server, scratch, "repair-warm", _WARMING_DEAD_LETTERS)
    start_s = _repair(spark, cluster, server, scratch, "repair-start", 1)
    loop_rates, rates, beyond_start = [], [], []
    for run in range(runs):
        loop_rates.append(dead_letters / _delete_plainly(server, f"plain-{run}", dead_letters))
        seconds = _repair(spark, cluster, server, scratch, f"repair-{run}", dead_letters)
        rates.append(dead_letters / seconds)
        beyond_start.append((dead_letters - 1) / (seconds - start_s))
    return [
        of_runs(
            f"repair ÷ plain loop, {dead_letters} dead letters, beyond Spark's own start",
            ratios(beyond_start, loop_rates),
            unit="ratio",
            peer="DeleteObjects with 1000 keys per request, for the same number of objects",
            goal=at_least(0.9),
        ),
        of_runs("the same, Spark's own start included", ratios(rates, loop_rates), unit="ratio"),
        of_runs("Spark's own start: a query of one dead letter", [start_s], unit="s"),
        of_runs(
            f"repair, {dead_letters} dead letters, including the start",
            rates,
            unit="dead letters/s",
        ),
        of_runs(f"plain loop, {dead_letters} dead letters", loop_rates, unit="dead letters/s"),
    ]


def _delete_plainly(server: S3Server, prefix: str, dead_letters: int) -> float:
    segments = _segments(prefix, dead_letters)
    _put_objects(server, segments)
    keys = [stored.key for segment in segments for stored in segment.objects]
    client = boto3.client("s3", endpoint_url=server.url, region_name="us-east-1")
    os.sync()
    start = time.monotonic()
    for first in range(0, len(keys), _KEYS_PER_REQUEST):
        named = [{"Key": key} for key in keys[first : first + _KEYS_PER_REQUEST]]
        client.delete_objects(Bucket=_BUCKET, Delete={"Objects": named, "Quiet": True})
    return time.monotonic() - start


def _put_objects(server: S3Server, segments: Sequence[RemoteLogSegmentMetadata]) -> None:
    """Create the objects as files on the server's disk."""
    for segment in segments:
        for stored in segment.objects:
            path = server.bucket_directory(_BUCKET) / stored.key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_CONTENT)


def _repair(
    spark: SparkSession,
    cluster: KafkaCluster,
    server: S3Server,
    scratch: Path,
    name: str,
    dead_letters: int,
) -> float:
    segments = _segments(name, dead_letters)
    _put_objects(server, segments)
    cluster.create_topic(name)
    cluster.create_topic(f"{name}.parked")
    connection = ClusterConnection.of(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "rlmm.config.remote.log.metadata.topic.name": f"{name}-metadata",
            "rsm.config.storage.backend": "s3",
            "rsm.config.storage.s3.bucket.name": _BUCKET,
            "rsm.config.storage.s3.endpoint.url": server.url,
            "rsm.config.storage.s3.region": "us-east-1",
            "rsm.config.storage.s3.path.style.access.enabled": "true",
        }
    )
    _write_records(connection, name, segments)
    settings = RepairSettings(
        dead_letter_topic=name,
        parking_topic=f"{name}.parked",
        checkpoint=str(scratch / name),
        interval_s=None,
        batch_dead_letter_count=DEFAULT_BATCH_DEAD_LETTER_COUNT,
        max_attempts=10,
        orphan_grace_ms=86_400_000,
        report=None,
    )
    kafka = connector_options(connection.client, {})
    with open_snapshot(connection, timeout_ms=60_000) as metadata:
        job = RepairJob(spark, connection, settings, kafka, metadata)
        os.sync()  # The job must not wait for earlier writes.
        start = time.monotonic()
        job.run()
        seconds = time.monotonic() - start
    if job.outcomes != {"repaired": dead_letters}:
        raise RuntimeError(
            f"cannot measure the repair: outcomes {job.outcomes}, expected {dead_letters} repaired"
        )
    return seconds


def _write_records(
    connection: ClusterConnection,
    dead_letter_topic: str,
    segments: Sequence[RemoteLogSegmentMetadata],
) -> None:
    """Write a claim of each partition, and the events and the dead letter of each segment."""
    shape = TopicSettings(
        name=connection.metadata_topic, partition_count=_METADATA_PARTITIONS, replication_factor=1
    )
    create_topic(connection.client, shape)
    producer = Producer(
        {
            **connection.client,
            "enable.idempotence": True,  # Without it, a retry can write a claim after its segments.
            "linger.ms": 20,
            "queue.buffering.max.messages": 10**6,
        }
    )
    for partition in {segment.topic_id_partition for segment in segments}:
        claim = LeadershipClaimed(
            event_id=uuid4(),
            topic_id_partition=partition,
            writer=_WRITER,
            lineage=Lineage.of((0, 0)),
        )
        _write_event(producer, connection.metadata_topic, claim)
    for segment in segments:
        for event in _events(segment):
            _write_event(producer, connection.metadata_topic, event)
        dead_letter = DeadLetter(
            metadata=segment, reason="bench", attempts=5, first_attempt_ms=1, last_attempt_ms=2
        )
        record = encode_dead_letter(dead_letter)
        producer.produce(dead_letter_topic, key=record.key, value=record.value)
    if producer.flush(60.0):
        raise RuntimeError("cannot fill the topics: the broker did not acknowledge all records")


def _write_event(producer: Producer, topic: str, event: Event) -> None:
    record = encode(event)
    partition = event_partition(event, _METADATA_PARTITIONS)
    producer.produce(topic, key=record.key, value=record.value, partition=partition)


def _segments(topic: str, count: int) -> list[RemoteLogSegmentMetadata]:
    """Return a segment of two objects for each dead letter.

    The segments belong to many partitions, so their objects are in many directories: within one
    directory, the server's file system deletes one file at a time.
    """
    topic_id = uuid4()
    partitions = [
        TopicIdPartition(topic_id=topic_id, topic=topic, partition=number)
        for number in range(_PARTITIONS)
    ]
    return [_segment(partitions[number % _PARTITIONS], number) for number in range(count)]


def _segment(partition: TopicIdPartition, base_offset: int) -> RemoteLogSegmentMetadata:
    segment_id = RemoteLogSegmentId(topic_id_partition=partition, id=uuid4())
    names = [
        ObjectKey(segment_id=segment_id, base_offset=base_offset, suffix=suffix)
        for suffix in ("log", "meta")
    ]
    return RemoteLogSegmentMetadata(
        segment_id=segment_id,
        offsets=OffsetRange(start_offset=base_offset, end_offset=base_offset + 1),
        max_timestamp_ms=1,
        segment_size_bytes=1,
        segment_leader_epochs=Lineage.of((0, base_offset)),
        state=SegmentState.DELETE_SEGMENT_STARTED,
        writer=_WRITER,
        event_timestamp_ms=1,
        layout="raw",
        objects=tuple(
            StoredObject(key=_KEYS.build(name), length_bytes=len(_CONTENT), crc32c=0)
            for name in names
        ),
    )


def _events(segment: RemoteLogSegmentMetadata) -> Iterator[SegmentEvent]:
    """Yield the events of a segment that was stored and whose deletion has started."""
    planned = tuple(StoredObject(key=each.key) for each in segment.objects)
    started = replace(segment, state=SegmentState.COPY_SEGMENT_STARTED, objects=planned)
    yield SegmentEvent(event_id=uuid4(), metadata=started, copy_timeout_ms=3_600_000)
    yield SegmentEvent(
        event_id=uuid4(),
        metadata=replace(segment, state=SegmentState.COPY_SEGMENT_FINISHED),
        expected_state=SegmentState.COPY_SEGMENT_STARTED,
    )
    yield SegmentEvent(
        event_id=uuid4(),
        metadata=segment,
        expected_state=SegmentState.COPY_SEGMENT_FINISHED,
    )
