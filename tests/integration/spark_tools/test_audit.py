"""`rlm-audit` over a real broker and a real S3 server, with every kind of fault planted there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from rlmm.cache.rocksdb import RocksDbStore
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import BytesSource
from rsm.system_clock import SystemClock
from spark_tools.audit.command import audit, command_parser
from spark_tools.audit.job import Audit, AuditSettings, IncompleteError
from spark_tools.connection import ClusterConnection
from spark_tools.snapshot import MetadataSnapshot, open_snapshot
from tests.e2e.broker_host import BrokerHost
from tests.integration.spark_tools.repair_world import RepairWorld
from tests.metadata_builder import FINISHED, segment_id
from tests.services.s3 import S3Server


def run(world: RepairWorld, *more: str) -> int:
    return audit(command_parser().parse_args([*world.arguments, "--grace-ms", "0", *more]))


def test_audit_when_things_are_wrong_then_each_is_found_once_and_nothing_is_changed(
    spark: SparkSession,
    host: BrokerHost,
    world: RepairWorld,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Scenarios 84 and 85."""
    with host.metadata() as metadata:
        world.claim(metadata)
        right, missing, truncated, overlapping, rotten = (
            world.store(metadata, FINISHED, start).metadata for start in (0, 100, 200, 250, 350)
        )
    orphan = ObjectKeys(prefix=world.partition.topic).build(
        ObjectKey(
            segment_id=RemoteLogSegmentId(topic_id_partition=world.partition, id=segment_id(5).id),
            base_offset=7,
            suffix="log",
        )
    )
    storage = world.storage
    storage.delete(missing.objects[0].key)
    storage.delete(truncated.objects[0].key)
    storage.create_with_content(truncated.objects[0].key, BytesSource(content=b"sto"))
    storage.delete(rotten.objects[0].key)
    storage.create_with_content(rotten.objects[0].key, BytesSource(content=b"rotten"))
    storage.create_with_content(orphan, BytesSource(content=b"nobody's"))
    before = {chunk.name for chunk in storage.list(f"{world.partition.topic}/")}
    output, page = tmp_path / "audit", tmp_path / "audit.html"

    code = run(
        world,
        *("--output", str(output), "--page", str(page), "--price", "0.02"),
        *("--verify-checksums", "--objects-per-task", "3"),
    )

    assert code == 4  # data is lost
    assert capsys.readouterr().out == "checksum 1\nmissing 1\norphan 1\noverlap 1\nsize 1\n"
    rows = {row["kind"]: row for row in spark.read.parquet(f"{output}/findings").collect()}
    assert rows["missing"]["object_key"] == missing.objects[0].key
    assert (rows["missing"]["start_offset"], rows["missing"]["end_offset"]) == (100, 200)
    assert rows["size"]["object_key"] == truncated.objects[0].key
    assert rows["checksum"]["object_key"] == rotten.objects[0].key
    assert rows["orphan"]["object_key"] == orphan
    assert rows["overlap"]["segment_id"] == str(overlapping.segment_id)
    shown = page.read_text()
    assert "<h1>Data is missing or damaged: 2 ranges in 1 partition.</h1>" in shown
    store = f"s3://{world.settings.bucket}/{world.partition.topic} at {world.settings.endpoint_url}"
    checked = "every object of finished segments was computed"
    for text in ("[100, 200)", store, "0.02 USD for 1 GiB a month", checked):
        assert text in shown
    assert str(right.segment_id) not in shown
    assert {chunk.name for chunk in storage.list(f"{world.partition.topic}/")} == before
    assert [each.name for each in output.iterdir()] == ["findings"]


class DyingSnapshot(MetadataSnapshot):
    """A snapshot of the metadata whose later records cannot be read."""

    def __init__(self, alive: MetadataSnapshot) -> None:
        self.__dict__.update(alive.__dict__)

    def catch_up_all(self) -> None:
        raise RetriableError("the cluster is away")


def test_audit_when_a_source_does_not_answer_whole_then_nothing_is_said(
    spark: SparkSession,
    host: BrokerHost,
    world: RepairWorld,
    s3_server: S3Server,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Scenario 107."""
    with host.metadata() as metadata:
        world.claim(metadata)
        world.store(metadata, FINISHED)
    connection = ClusterConnection.of(world.options)

    @contextmanager
    def dying_metadata() -> Iterator[MetadataSnapshot]:
        with open_snapshot(connection, timeout_ms=30_000) as snapshot:
            yield DyingSnapshot(snapshot)

    settings = AuditSettings(grace_ms=0, objects_per_range=10, verify_checksums=False)
    with pytest.raises(IncompleteError, match="the cluster is away"):
        Audit(spark, connection.store, dying_metadata, settings, SystemClock()).run()

    @contextmanager
    def metadata_of_a_lost_store() -> Iterator[MetadataSnapshot]:
        with open_snapshot(connection, timeout_ms=30_000) as snapshot:
            s3_server.stop()
            yield snapshot

    impatient = ("--option", "rsm.config.storage.s3.max.attempts=1")
    try:
        with pytest.raises(
            IncompleteError, match="completely: the request to the store failed"
        ) as raised:
            Audit(spark, connection.store, metadata_of_a_lost_store, settings, SystemClock()).run()
        with pytest.raises(InvalidConfigError, match="cannot list the store"):
            run(world, *impatient, "--delete", "--yes")
    finally:
        s3_server.start()
    assert "Traceback" not in str(raised.value)
    assert capsys.readouterr().out == ""
    assert world.received(world.dead_letters) == []


def test_audit_when_a_record_can_not_be_read_then_exit_3_and_nothing_is_said(
    host: BrokerHost, world: RepairWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scenario 107."""
    with host.metadata() as metadata:
        world.claim(metadata)
        world.store(metadata, FINISHED)
    producer = Producer({"bootstrap.servers": world.servers})
    topic = world.options["rlmm.config.remote.log.metadata.topic.name"]
    producer.produce(topic, key=b"nobody's", value=b"nothing")
    assert producer.flush(30.0) == 0

    code = run(world, "--delete", "--yes")

    said = capsys.readouterr()
    assert (code, said.out) == (3, "")
    assert said.err.startswith("rlm-audit: cannot read the metadata topic completely (records=")
    assert said.err.count("\n") == 1
    assert world.received(world.dead_letters) == []


def test_audit_when_its_findings_can_not_be_written_then_reported_before_any_work(
    host: BrokerHost, world: RepairWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with host.metadata() as metadata:
        world.claim(metadata)
    (tmp_path / "file").touch()

    expected = r"cannot write a file in the directory.*is not a directory"
    with pytest.raises(InvalidConfigError, match=expected):
        run(world, "--output", str(tmp_path / "file"))

    assert capsys.readouterr().out == ""


def test_audit_when_it_begins_with_a_cache_then_it_reads_on_from_there(
    host: BrokerHost, world: RepairWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process uses the cache, which lacks the records written after it was opened."""
    connection = ClusterConnection.of(world.options)
    store = RocksDbStore(tmp_path / "cache")
    with host.metadata() as metadata:
        world.claim(metadata)
        world.store(metadata, FINISHED)
        with open_snapshot(connection, timeout_ms=30_000, store=store):
            pass
        later = world.store(metadata, FINISHED, 100).metadata
    world.storage.delete(later.objects[0].key)

    with closing(RocksDbStore(tmp_path / "cache")):
        code = run(world, "--metadata-cache", str(tmp_path / "cache"))

    assert code == 4  # data is lost
    assert capsys.readouterr().out == "missing 1\n"
    with pytest.raises(InvalidConfigError, match="the directory has none"):
        run(world, "--metadata-cache", str(tmp_path))
