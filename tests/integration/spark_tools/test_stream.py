"""The data source as a stream that is stopped and goes on from its checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import SparkSession

from spark_tools.cluster_topics import find_partitions
from tests.e2e.broker_host import BrokerHost
from tests.segment_builder import build_batches, build_segment
from tests.stored_topic import StoredTopic

Run = Callable[[], list[tuple[int, int]]]


@pytest.fixture
def run(spark: SparkSession, host: BrokerHost, topic_name: str, tmp_path: Path) -> Run:
    """Read all that is stored now; (partition, offset) of what the sink then holds."""

    def read() -> list[tuple[int, int]]:
        rows = (
            spark.readStream.format("rlm")
            .option("config", str(host.config_path))
            .option("subscribe", topic_name)
            .option("columns", "partition,offset")
            .option("startingOffsets", "latest")
            .load()
        )
        query = (
            rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "sink"))
        )
        query.awaitTermination()
        written = spark.read.schema(rows.schema).parquet(str(tmp_path / "sink"))
        return sorted((row["partition"], row["offset"]) for row in written.collect())

    return read


def store(topic: StoredTopic, base_offset: int) -> None:
    segment = build_segment(build_batches(2, base_offset=base_offset))
    topic.store(segment, max_timestamp_ms=1)


def test_stream_when_restarted_from_its_checkpoint_then_each_record_once(
    host: BrokerHost, topic_name: str, run: Run
) -> None:
    """Also of what is not stored from offset 0 on, and of partitions that are added."""
    host.cluster.create_topic(topic_name)
    servers = host.cluster.bootstrap_servers
    (first,) = find_partitions({"bootstrap.servers": servers}, [topic_name], timeout_ms=30_000)[
        topic_name
    ]
    expected = [(0, offset) for offset in range(100, 160)]

    with host.metadata() as metadata:
        topic = StoredTopic(first, host.store, metadata)
        assert run() == []
        store(topic, 100)
        store(topic, 120)
        assert run() == expected[:40]
        store(topic, 140)
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_partitions([NewPartitions(topic_name, 2)])[topic_name].result(30.0)
        added = StoredTopic(replace(first, partition=1), host.store, metadata)
        store(added, 7)
        assert run() == [*expected, *((1, offset) for offset in range(7, 27))]
        topic.close()
        added.close()
