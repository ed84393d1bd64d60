"""The data source as a stream that is stopped and continues from its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyspark
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rlm.cli.invocation.amounts import iso_time
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.ids import TopicIdPartition
from spark_tools.cluster_topics import find_partitions
from tests.e2e.broker_host import BrokerHost
from tests.integration.spark_tools.started_streams import finished_stream
from tests.segment_builder import build_batches, build_segment
from tests.services.waiting import wait_until
from tests.stored_topic import StoredTopic

_NO_LIMITS = "cannot limit micro-batches: Spark 4.2 or newer is required"
_IMPOSSIBLE = [
    ({"endingOffsets": "latest"}, "a stream has no end"),
    *(
        ({option: "25"}, _NO_LIMITS)
        for option in ("maxOffsetsPerTrigger", "maxBytesPerTrigger")
        if pyspark.__version__ < "4.2"
    ),
]

_limits_micro_batches = pytest.mark.since_spark("4.2", reason=_NO_LIMITS)

Run = Callable[[], list[tuple[int, int]]]


@pytest.fixture
def run(spark: SparkSession, host: BrokerHost, topic_name: str, tmp_path: Path) -> Run:
    """Read all that is stored now; return (partition, offset) of the sink's records."""

    def read() -> list[tuple[int, int]]:
        rows = (
            spark.readStream.format("rlm")
            .option("config", str(host.config_path))
            .option("subscribe", topic_name)
            .option("columns", "partition,offset")
            .option("startingOffsets", "latest")
            .load()
        )
        writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        finished_stream(partial(writer.trigger(availableNow=True).start, str(tmp_path / "sink")))
        written = spark.read.schema(rows.schema).parquet(str(tmp_path / "sink"))
        return sorted((row["partition"], row["offset"]) for row in written.collect())

    return read


def store(topic: StoredTopic, base_offset: int) -> None:
    segment = build_segment(build_batches(2, base_offset=base_offset))
    topic.store(segment, max_timestamp_ms=1)


def active_leases(metadata: RemoteLogMetadataManager, tip: TopicIdPartition) -> bool:
    return bool(metadata.partition_state(tip).active_leases(metadata.broker_time_ms()))


def test_stream_when_restarted_from_its_checkpoint_then_each_record_once(
    host: BrokerHost, topic_name: str, run: Run
) -> None:
    """The stream also starts before anything is stored, and reads added partitions."""
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
        wait_until(
            lambda: not active_leases(metadata, first), describe="leases released at the end"
        )
        topic.close()
        added.close()


@pytest.fixture
def stored(host: BrokerHost, topic_name: str) -> str:
    """A topic of two partitions, with 60 and 20 offsets."""
    host.cluster.create_topic(topic_name, partitions=2)
    servers = host.cluster.bootstrap_servers
    found = find_partitions({"bootstrap.servers": servers}, [topic_name], timeout_ms=30_000)
    with host.metadata() as metadata:
        for partition, segments in zip(found[topic_name], (3, 1), strict=True):
            topic = StoredTopic(partition, host.store, metadata)
            for number in range(segments):
                store(topic, 20 * number)
            topic.close()
    return topic_name


def streamed(spark: SparkSession, host: BrokerHost, topic: str, **options: str) -> DataFrame:
    return (
        spark.readStream.format("rlm")
        .option("config", str(host.config_path))
        .options(**{"subscribe": topic, "columns": "partition,offset", **options})
        .load()
    )


@_limits_micro_batches
@pytest.mark.parametrize(
    ("options", "most"),
    [({"maxOffsetsPerTrigger": "25"}, 25), ({"maxBytesPerTrigger": "1000"}, 40)],
)
def test_stream_when_micro_batches_are_limited_then_several_read_all_that_was_stored(
    spark: SparkSession,
    host: BrokerHost,
    stored: str,
    tmp_path: Path,
    options: dict[str, str],
    most: int,
) -> None:
    rows = streamed(spark, host, stored, **options)
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = finished_stream(
        partial(writer.trigger(availableNow=True).start, str(tmp_path / "sink"))
    )

    counts = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
    assert len(counts) >= 3
    assert max(counts) <= most
    assert sum(counts) == 80
    written = spark.read.schema(rows.schema).parquet(str(tmp_path / "sink"))
    assert sorted((row["partition"], row["offset"]) for row in written.collect()) == [
        *((0, offset) for offset in range(60)),
        *((1, offset) for offset in range(20)),
    ]


def test_stream_when_all_is_read_and_nothing_follows_then_nothing_is_leased(
    spark: SparkSession, host: BrokerHost, stored: str
) -> None:
    servers = host.cluster.bootstrap_servers
    found = find_partitions({"bootstrap.servers": servers}, [stored], timeout_ms=30_000)
    first = found[stored][0]
    rows = streamed(spark, host, stored)
    with host.metadata() as metadata:
        query = rows.writeStream.format("noop").trigger(processingTime="1 second").start()
        try:
            wait_until(lambda: active_leases(metadata, first), 120.0, "a micro-batch has a lease")
            wait_until(lambda: not active_leases(metadata, first), 60.0, "the lease is released")
            assert query.isActive
        finally:
            query.stop()


def leases_column(host: BrokerHost, topic: str) -> str:
    """Return the leases that `rlm status --wide` shows of partition 0, without line breaks."""
    titles, *lines = host.rlm("status", f"{topic}:0", "--wide").splitlines()
    column = titles.index("read leases")
    return "".join("".join(line[column:].split()) for line in lines)


def test_stream_when_stopped_before_it_looks_for_more_then_its_lease_is_released(
    spark: SparkSession, host: BrokerHost, stored: str
) -> None:
    """While the lease lasts, `rlm status` shows its holder and its end."""
    servers = host.cluster.bootstrap_servers
    found = find_partitions({"bootstrap.servers": servers}, [stored], timeout_ms=30_000)
    first = found[stored][0]
    rows = streamed(spark, host, stored)
    with host.metadata() as metadata:
        query = rows.writeStream.format("noop").trigger(processingTime="1 hour").start()
        try:
            wait_until(lambda: query.lastProgress is not None, 120.0, "a micro-batch has ended")
            state = metadata.partition_state(first)
            (lease,) = state.active_leases(metadata.broker_time_ms())
            (row,) = json.loads(host.rlm("status", f"{stored}:0", "--json"))["partitions"]
            shown = leases_column(host, stored)
        finally:
            query.stop()

        assert row["read_leases"] == [
            {
                "holder": lease.holder,
                "start_offset": 0,
                "end_offset": 60,
                "expires_ms": lease.expires_ms,
            }
        ]
        assert lease.holder.startswith("spark:")
        assert shown == f"{lease.holder}until{iso_time(lease.expires_ms)}"
        wait_until(lambda: not active_leases(metadata, first), describe="the lease is released")
        assert leases_column(host, stored) == "-"


@_limits_micro_batches
def test_stream_when_micro_batches_lag_then_their_progress_says_how_far(
    spark: SparkSession, host: BrokerHost, stored: str, tmp_path: Path
) -> None:
    rows = streamed(spark, host, stored, maxOffsetsPerTrigger="8")
    query = (
        rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="1 hour")
        .start(str(tmp_path / "sink"))
    )
    try:
        wait_until(lambda: query.lastProgress is not None, 120.0, "a micro-batch has ended")
        progress = query.lastProgress
    finally:
        query.stop()

    assert progress is not None
    (source,) = progress["sources"]
    assert json.loads(source["endOffset"]) == {stored: {"0": 6, "1": 2}}
    assert json.loads(source["latestOffset"]) == {stored: {"0": 60, "1": 20}}


@pytest.mark.parametrize(("options", "message"), _IMPOSSIBLE)
def test_stream_when_an_option_is_impossible_for_it_then_refused(
    spark: SparkSession,
    host: BrokerHost,
    stored: str,
    tmp_path: Path,
    options: dict[str, str],
    message: str,
) -> None:
    rows = streamed(spark, host, stored, **options)

    with pytest.raises(PySparkException, match=message):
        rows.writeStream.option("checkpointLocation", str(tmp_path / "c")).start(
            str(tmp_path / "sink")
        ).awaitTermination()
