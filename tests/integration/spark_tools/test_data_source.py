"""The data source's rows are a plain consumer's records, for every codec and with transactions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit, spark_partition_id, udf

from rlmm.spi import RemoteLogMetadataManager
from rlmm.state.partition_state import ReadLease
from rsm.segment.errors import RetriableError
from spark_tools.data_source import explain, register
from spark_tools.rows.schema import COLUMNS
from spark_tools.spark.application_leases import LEASE_IDLE_S
from tests.integration.rlm.gateway.twin_topics import Twin, TwinTopics
from tests.services.waiting import wait_until

_TOPICS = ("every", "older", "streamed")
_PUSHES_FILTERS = "spark.sql.python.filterPushdown.enabled"


def loaded(spark: SparkSession, twins: TwinTopics, topic: str, **options: str) -> DataFrame:
    return (
        spark.read.format("rlm")
        .option("config", str(twins.host.config_path))
        .options(**{"subscribe": topic, **options})
        .load()
    )


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def consumed(twins: TwinTopics, twin: Twin, isolation: str) -> list[Message]:
    """Return the records that a consumer reads from the complete twin."""
    consumer = Consumer(
        {
            "bootstrap.servers": twins.host.cluster.bootstrap_servers,
            "group.id": "truth",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(twin.whole.topic, 0, 0)])
    messages: list[Message] = []
    while (message := consumer.poll(30.0)) is not None and message.error() is None:
        messages.append(message)
    consumer.close()
    return messages


def stored_part(messages: list[Message], twin: Twin) -> list[Message]:
    return [each for each in messages if (each.offset() or 0) < twin.stored_end_offset]


def as_row(message: Message, topic: str) -> dict[str, Any]:
    kind, timestamp_ms = message.timestamp()
    epoch = message.leader_epoch()
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return {
        "key": message.key(),
        "value": message.value(),
        "topic": topic,
        "partition": 0,
        "offset": message.offset(),
        "timestamp_ms": timestamp_ms if kind else -1,
        "timestampType": max(kind - 1, 0),
        "headers": [{"key": k, "value": v} for k, v in headers] or None,
        "leader_epoch": -1 if epoch is None else epoch,
    }


@pytest.fixture
def unreadable_object(twins: TwinTopics) -> Iterator[str]:
    with object_away(twins) as key:
        yield key


@contextmanager
def object_away(twins: TwinTopics) -> Iterator[str]:
    """Remove the log of the second stored segment until the block ends."""
    partition = twins["older"].tiered
    with twins.host.metadata() as metadata:
        found = [each.metadata for each in metadata.list_remote_log_segments(partition)]
    key = found[1].objects[0].key
    path = twins.host.store / key
    away = path.rename(path.with_suffix(".away"))
    try:
        yield key
    finally:
        away.rename(path)


def as_consumed(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a query in the form that `as_row` gives a consumer's records."""
    rows = [
        {
            **{name: row[name] for name in row if name != "timestamp"},
            "timestamp_ms": row["timestamp_ms"],
            "key": row["key"] and bytes(row["key"]),
            "value": row["value"] and bytes(row["value"]),
        }
        for row in rows_of(frame.selectExpr("*", "unix_millis(timestamp) timestamp_ms"))
    ]
    for row in rows:
        if row["headers"]:
            row["headers"] = [
                {"key": h["key"], "value": h["value"] and bytes(h["value"])} for h in row["headers"]
            ]
    return rows


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("topic", _TOPICS)
def test_read_when_of_what_is_stored_then_a_plain_consumers_records(
    spark: SparkSession, twins: TwinTopics, topic: str, isolation: str
) -> None:
    twin = twins[topic]

    frame = loaded(spark, twins, topic, isolation=isolation)

    assert frame.columns == list(COLUMNS)
    rows = as_consumed(frame)
    assert len(rows) > 10
    consumer_has = stored_part(consumed(twins, twin, isolation), twin)
    assert rows == [as_row(message, topic) for message in consumer_has]


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("topic", _TOPICS)
def test_read_when_it_continues_at_the_broker_then_all_of_a_plain_consumers_records(
    spark: SparkSession, twins: TwinTopics, topic: str, isolation: str
) -> None:
    """No gap and no duplicate where the store ends, with and without aborted transactions."""
    twin = twins[topic]

    rows = as_consumed(loaded(spark, twins, topic, isolation=isolation, endingOffsets="latest"))

    consumer_has = consumed(twins, twin, isolation)
    is_all_stored = twin.is_streamed and isolation == "read_committed"
    assert (len(consumer_has) == len(stored_part(consumer_has, twin))) is is_all_stored
    assert rows == [as_row(message, topic) for message in consumer_has]


def test_read_when_bounded_then_only_those(spark: SparkSession, twins: TwinTopics) -> None:
    frame = loaded(
        spark,
        twins,
        "every",
        startingOffsets='{"every":{"0":4}}',
        endingOffsets='{"every":{"0":17}}',
        columns="offset,partition",
    )

    assert [row["offset"] for row in rows_of(frame)] == list(range(4, 17))


def test_read_when_segments_are_split_then_pieces_meet_without_a_gap(
    spark: SparkSession, twins: TwinTopics
) -> None:
    whole = loaded(spark, twins, "every", columns="offset")

    # A piece has half a segment's offsets, so that batches cross the edges of pieces.
    pieces = loaded(spark, twins, "every", columns="offset", splitBytes="700")

    assert rows_by_offset(pieces) == rows_by_offset(whole)
    count = pieces.select(spark_partition_id()).distinct().count()
    assert count > len(twins["every"].log.segments)


def rows_by_offset(frame: DataFrame) -> list[int]:
    return sorted(row["offset"] for row in frame.collect())


@pytest.mark.parametrize("pushes_filters", ["true", "false"])
def test_read_when_a_frame_is_used_twice_then_each_use_has_its_own_filter(
    spark: SparkSession, twins: TwinTopics, pushes_filters: str
) -> None:
    """Spark plans a relation once for all uses, so no use may leave its filter in the relation."""
    spark.conf.set(_PUSHES_FILTERS, pushes_filters)
    register(spark)  # the class registered under the name may depend on the setting
    frame = loaded(spark, twins, "every", columns="offset,partition")
    every = rows_by_offset(frame)

    few = frame.where("offset > 40 and offset <= 43 and partition = 0")
    both = frame.where("offset < 5").union(frame.where("offset > 43"))
    joined = frame.where("offset < 5").alias("a").join(frame.alias("b"), "partition")
    frame.createOrReplaceTempView("every")
    by_sql = spark.sql(
        "select (select count(*) from every where `offset` < 5), (select count(*) from every),"
        " (select count(*) from every where `offset` in (1, 41))"
    )

    first = [offset for offset in every if offset < 5]
    assert rows_by_offset(few) == [41, 42, 43]
    assert rows_by_offset(frame) == every
    assert rows_by_offset(both) == [*first, *(offset for offset in every if offset > 43)]
    assert joined.count() == len(first) * len(every)
    assert tuple(by_sql.head() or ()) == (len(first), len(every), len({1, 41} & set(every)))
    assert rows_by_offset(frame.where("partition = 1")) == []


def test_read_when_an_object_is_gone_then_its_task_names_segment_object_and_offset(
    spark: SparkSession, twins: TwinTopics, unreadable_object: str
) -> None:
    frame = loaded(spark, twins, "older", columns="offset")

    with pytest.raises(PySparkException) as failure:
        frame.collect()

    assert unreadable_object in str(failure.value)
    assert "a stored segment cannot be read" in str(failure.value)
    assert "Call load() again" in str(failure.value)
    assert "Traceback" not in str(failure.value)


def test_read_when_what_it_planned_has_expired_since_then_says_so_with_the_plans_time(
    spark: SparkSession, twins: TwinTopics
) -> None:
    """A DataFrame keeps the plan of its first action; its lease ends after that action."""
    frame = loaded(spark, twins, "older", columns="offset")
    assert frame.count() > 15

    with object_away(twins), pytest.raises(PySparkException) as failure:
        frame.collect()

    assert "cannot read a segment: it expired after the query was planned" in str(failure.value)
    assert re.search(r"planned_at=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", str(failure.value))


def test_read_when_permissive_then_what_is_unreadable_is_listed(
    spark: SparkSession, twins: TwinTopics, unreadable_object: str
) -> None:
    frame = loaded(spark, twins, "older", columns="offset", mode="permissive")

    rows = sorted(frame.collect(), key=lambda row: row["offset"])

    assert [row["offset"] for row in rows if row["unreadable"] is None] == list(range(15))
    (listed,) = [row for row in rows if row["unreadable"]]
    assert listed["offset"] == 15
    assert unreadable_object in listed["unreadable"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"subscribe": "missing"},
            "cannot find the topic: Broker: Unknown topic or partition (topic=missing",
        ),
        ({"assign": '{"every":[7]}', "subscribe": ""}, "exactly one option must select the topics"),
        ({"startingOffset": "earliest"}, "did_you_mean=startingOffsets"),
        ({"rlmm.config.remote.log.metadata.topic.name": "no"}, "cannot read the metadata topic"),
        ({"bootstrap.servers": "127.0.0.1:1", "timeoutMs": "500"}, "the brokers do not answer"),
        ({"rsm.config.storage.filesystem.root": "/nowhere"}, "nowhere"),
        ({"startingTimestamp": "5"}, "instead=fromTimestamp and untilTimestamp"),
        ({"startingOffsets": '{"every":{"0":100000}}'}, "outside of the readable range"),
    ],
)
def test_read_when_the_user_is_wrong_then_reported_in_a_sentence_before_any_work(
    spark: SparkSession, twins: TwinTopics, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=re.escape(message)) as raised:
        loaded(spark, twins, "every", **options).collect()

    assert "Traceback" not in str(raised.value)


def test_load_when_a_setting_is_wrong_then_reported_at_once(
    spark: SparkSession, twins: TwinTopics
) -> None:
    with pytest.raises(PySparkException, match="cannot find the topic"):
        loaded(spark, twins, "missing")


def test_read_when_a_topic_was_never_tiered_then_refused(
    spark: SparkSession, twins: TwinTopics
) -> None:
    whole = twins["every"].whole.topic

    with pytest.raises(PySparkException, match=f"never tiered \\(topic={whole}"):
        loaded(spark, twins, whole).collect()


def test_read_when_a_schema_is_given_then_it_chooses_columns_or_is_refused(
    spark: SparkSession, twins: TwinTopics
) -> None:
    reader = spark.read.format("rlm").option("config", str(twins.host.config_path))
    reader = reader.option("subscribe", "every")

    assert reader.schema("offset bigint, value binary").load().columns == ["offset", "value"]
    assert reader.schema("offset bigint").load().count() == loaded(spark, twins, "every").count()
    with pytest.raises(PySparkException, match="it does not fit the data source"):
        reader.schema("offset int, colour string").load().collect()


def test_read_when_options_are_those_of_sparks_kafka_source_then_as_there(
    spark: SparkSession, twins: TwinTopics
) -> None:
    every = loaded(spark, twins, "every", columns="offset")
    reader = (
        spark.read.format("rlm")
        .option("config", str(twins.host.config_path))
        .option("kafka.bootstrap.servers", twins.host.cluster.bootstrap_servers)
        .option("subscribePattern", "ev.*y")
        .option("includeHeaders", "false")
        .option("failOnDataLoss", "false")
        .option("minPartitions", "20")
    )

    frame = reader.load()

    assert "headers" not in frame.columns
    assert frame.rdd.getNumPartitions() >= 20
    assert rows_by_offset(frame.select("offset")) == rows_by_offset(every)


@pytest.mark.usefixtures("unreadable_object")
def test_read_when_what_is_lost_may_be_left_out_then_the_rest_is_read(
    spark: SparkSession, twins: TwinTopics
) -> None:
    frame = loaded(spark, twins, "older", columns="offset", failOnDataLoss="false")

    assert rows_by_offset(frame) == list(range(15))


def test_explain_when_asked_then_what_a_query_would_read(
    spark: SparkSession, twins: TwinTopics
) -> None:
    options = {"config": str(twins.host.config_path), "subscribe": "every"}
    frame = loaded(spark, twins, "every", columns="offset")

    (row,) = explain(spark, **options).collect()
    (bounded,) = explain(spark, **options, startingOffsets='{"every":{"0":40}}').collect()

    assert row["tasks"] == frame.rdd.getNumPartitions()
    assert row["segments"] == len(twins["every"].log.segments) - 1  # the last one is active
    assert row["size_bytes"] > 0
    assert row["pruned_by_offset"] == row["pruned_by_time"] == 0
    assert bounded["start_offset"] == 40
    assert bounded["pruned_by_offset"] == row["segments"] - bounded["segments"] > 0


def _when_let(offset: int, permit: str) -> bool:
    """Return True; for one record, wait until the file `permit` exists."""
    return offset != 5 or wait_until(Path(permit).exists, 120)


def active_leases(metadata: RemoteLogMetadataManager, twins: TwinTopics) -> list[ReadLease]:
    state = metadata.partition_state(twins["every"].tiered)
    return list(state.active_leases(metadata.broker_time_ms()))


def test_read_when_it_runs_then_its_lease_is_renewed_and_released_when_it_has_ended(
    spark: SparkSession, twins: TwinTopics, tmp_path: Path
) -> None:
    """A query that runs for longer than a lease lasts."""
    register(spark, lease_idle_s=1.0)
    waits, permit = udf(_when_let, "boolean", useArrow=False), tmp_path / "permit"
    frame = loaded(spark, twins, "every", columns="offset", leaseMs="2000")

    with twins.host.metadata() as metadata, ThreadPoolExecutor(1) as pool:
        wait_until(lambda: not active_leases(metadata, twins))  # of earlier queries
        query = pool.submit(frame.where(waits("offset", lit(str(permit)))).count)
        (first,) = wait_until(lambda: active_leases(metadata, twins), despite=RetriableError)
        later = wait_until(
            lambda: [
                lease
                for lease in active_leases(metadata, twins)
                if lease.expires_ms > first.expires_ms + 2000
            ]
        )
        assert not query.done()
        assert later[0].lease_id == first.lease_id
        permit.touch()
        assert query.result() > 40
        # The query released its lease, which would have expired later.
        wait_until(lambda: not metadata.partition_state(twins["every"].tiered).read_leases)
    register(spark, lease_idle_s=LEASE_IDLE_S)


def test_read_when_planned_then_expiry_is_blocked_by_a_lease(
    spark: SparkSession, twins: TwinTopics
) -> None:
    loaded(spark, twins, "every", columns="offset", leaseMs="7200000").collect()
    loaded(spark, twins, "every", columns="offset", endingOffsets='{"every":{"0":5}}').collect()

    with twins.host.metadata() as metadata:
        (lease,) = metadata.partition_state(twins["every"].tiered).read_leases
        assert lease.offsets.end_offset > 40
        assert lease.expires_ms > metadata.broker_time_ms() + 7_000_000


def test_query_when_done_then_sparks_pages_show_its_rows(
    spark: SparkSession, twins: TwinTopics
) -> None:
    """The pages show the bytes from Python only; a Python data source cannot report others."""
    frame = loaded(spark, twins, "every", columns="offset")
    count = frame.count()
    frame.write.format("noop").mode("overwrite").save()

    # Spark's pages show these stores (here py4j's proxies), which receive events asynchronously.
    session = cast("Any", spark)._jsparkSession
    session.sparkContext().listenerBus().waitUntilEmpty()
    store = session.sharedState().statusStore()
    queries = store.executionsList()
    query_id = queries.apply(queries.size() - 1).executionId()
    found = store.executionMetrics(query_id)
    nodes = store.planGraph(query_id).allNodes()
    scan = next(n for n in map(nodes.apply, range(nodes.size())) if "BatchScan" in n.name())
    metrics = map(scan.metrics().apply, range(scan.metrics().size()))
    shown = {each.name(): found.get(each.accumulatorId()).get() for each in metrics}
    assert int(shown["number of output rows"].replace(",", "")) == count
    assert "KiB" in shown["data returned from Python workers"]
