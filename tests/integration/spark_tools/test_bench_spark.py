"""The Spark benchmarks on little data: that each measures what it says, never how fast."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from bench.spark.auditing import audit, prepare, put_objects
from bench.spark.exporting import measure_exporting
from bench.spark.reading import ReadTopics, measure_reading
from bench.spark.repairing import measure_repairing
from tests.integration.rlm.gateway.twin_topics import TwinTopics
from tests.services.kafka import KafkaCluster
from tests.services.s3 import S3Server


def test_audit_benchmark_when_run_on_little_data_then_all_is_found(
    spark: SparkSession, kafka: KafkaCluster, s3_server: S3Server
) -> None:
    """Runs over a generated listing, and over a real store."""
    topic, servers = prepare(kafka, 1_500), kafka.bootstrap_servers
    put_objects(s3_server, 1_500)

    generated = audit(spark, segments=1_500, topic=topic, servers=servers)
    real = audit(spark, segments=1_500, topic=topic, servers=servers, endpoint=s3_server.url)

    for figures in (generated, real):
        assert figures["seconds"] > 0
        assert figures["memory_mib"] > 0


def test_repair_benchmark_when_run_on_little_data_then_all_is_measured(
    spark: SparkSession, kafka: KafkaCluster, s3_server: S3Server, tmp_path: Path
) -> None:
    measurements = measure_repairing(spark, kafka, s3_server, tmp_path, dead_letters=20, runs=1)

    units = ["ratio", "ratio", "s", "dead letters/s", "dead letters/s"]
    assert [each.unit for each in measurements] == units
    # The first figure is the time beyond that of one dead letter: for so few it may be 0.
    assert all(each.value > 0 for each in measurements[1:])


def test_reading_benchmark_when_run_on_little_data_then_all_is_measured(
    spark: SparkSession, twins: TwinTopics
) -> None:
    topics = ReadTopics(
        servers=twins.host.cluster.bootstrap_servers,
        configuration=twins.host.config_path,
        stored=twins["every"].tiered.topic,
        local=twins["every"].whole.topic,
        record_bytes=100,
    )

    measurements = measure_reading(spark, topics, runs=1, cores=2)

    assert [each.unit for each in measurements] == ["ratio", "1000 rows/s", "MiB/s"]
    assert all(each.value > 0 for each in measurements)


def test_exporting_benchmark_when_run_on_little_data_then_all_is_measured(
    spark: SparkSession, twins: TwinTopics, tmp_path: Path
) -> None:
    topics = ReadTopics(
        servers=twins.host.cluster.bootstrap_servers,
        configuration=twins.host.config_path,
        stored=twins["every"].tiered.topic,
        local=twins["every"].whole.topic,
        record_bytes=100,
    )

    measurements = measure_exporting(spark, topics, tmp_path, runs=1, cores=2)

    assert [each.unit for each in measurements] == ["ratio", "1000 rows/s"]
    assert all(each.value > 0 for each in measurements)
