"""The data source as a stream that is stopped and goes on from its checkpoint."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark_tools.cluster_topics import find_partitions
from tests.e2e.broker_host import BrokerHost
from tests.segment_builder import build_batches, build_segment
from tests.stored_topic import StoredTopic


def test_stream_when_restarted_from_its_checkpoint_then_each_record_once(
    spark: SparkSession, host: BrokerHost, topic_name: str, tmp_path: Path
) -> None:
    host.cluster.create_topic(topic_name)
    client = {"bootstrap.servers": host.cluster.bootstrap_servers}
    (partition,) = find_partitions(client, [topic_name], timeout_ms=30_000)[topic_name]

    def run() -> list[int]:
        """Read all that is stored now; what the sink then holds."""
        rows = (
            spark.readStream.format("rlm")
            .option("config", str(host.config_path))
            .option("subscribe", topic_name)
            .option("columns", "offset")
            .load()
        )
        query = (
            rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "sink"))
        )
        query.awaitTermination()
        return sorted(row["offset"] for row in spark.read.parquet(str(tmp_path / "sink")).collect())

    with host.metadata() as metadata:
        topic = StoredTopic(partition, host.store, metadata)
        for base_offset in (0, 20):
            segment = build_segment(build_batches(2, base_offset=base_offset))
            topic.store(segment, max_timestamp_ms=1)
        assert run() == list(range(40))
        topic.store(build_segment(build_batches(2, base_offset=40)), max_timestamp_ms=1)
        assert run() == list(range(60))
        topic.close()
