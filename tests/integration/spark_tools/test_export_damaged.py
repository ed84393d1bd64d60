"""`rlm-export` of a store with missing or damaged objects: everything else is exported once."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from pyarrow import dataset, parquet
from pyspark.sql import SparkSession

from spark_tools.export.command import command_parser, export
from tests.integration.rlm.gateway.twin_topics import TwinTopics
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_CODEC = "spark.sql.parquet.compression.codec"


@pytest.fixture
def store(twins: TwinTopics, tmp_path: Path) -> Path:
    """A copy of the store, for a test to damage."""
    return Path(shutil.copytree(twins.host.store, tmp_path / "store"))


@pytest.fixture(params=["snappy", "lz4"])
def codec(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """A codec that tasks write with Arrow, and one that only Spark can write."""
    spark.conf.set(_CODEC, request.param)
    yield request.param
    spark.conf.unset(_CODEC)


def run(twins: TwinTopics, store: Path, output: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Export both topics; return the exit code and the summary."""
    summary = output.with_name("summary.json")
    options = ("--config", str(twins.host.config_path), "--summary", str(summary))
    rooted = ("--option", f"rsm.config.storage.filesystem.root={store}")
    arguments = [*options, *rooted, *more, "every,older", str(output)]
    code = export(command_parser().parse_args(arguments))
    return code, json.loads(summary.read_text())


def log_of(twins: TwinTopics, store: Path, topic: str, number: int) -> tuple[Path, list[int]]:
    """Return the file of a stored segment's log, and the offsets of the segment's range."""
    with twins.host.metadata() as metadata:
        found = list(metadata.list_remote_log_segments(twins[topic].tiered))
    segment = sorted((each.metadata for each in found), key=lambda each: each.offsets)[number]
    key = segment.objects[0].key
    return store / key, list(range(segment.offsets.start_offset, segment.offsets.end_offset))


def exported(output: Path, topic: str) -> list[int]:
    """Return the offsets in the order of files and rows; check that they ascend in each file."""
    found = []
    for path in sorted((output / "data").rglob(f"topic={topic}/**/*.parquet")):
        offsets = parquet.read_table(path, partitioning=None).column("offset").to_pylist()
        assert offsets == sorted(offsets)
        found += offsets
    return found


def stored(spark: SparkSession, twins: TwinTopics, topic: str) -> list[int]:
    frame = spark.read.format("rlm").option("config", str(twins.host.config_path))
    return sorted(
        row[0] for row in frame.option("subscribe", topic).load().select("offset").collect()
    )


@pytest.mark.usefixtures("codec")
def test_export_when_segments_are_away_or_damaged_then_all_else_is_and_later_what_was_skipped(
    spark: SparkSession,
    twins: TwinTopics,
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both modes export the same; only `failfast` has another exit code."""
    output = tmp_path / "out"
    away, lost_offsets = log_of(twins, store, "every", 1)
    away.rename(away.with_suffix(".away"))
    damaged, damaged_offsets = log_of(twins, store, "older", 0)
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    whole = {topic: stored(spark, twins, topic) for topic in ("every", "older")}

    code, summary = run(twins, store, output)

    assert (code, summary["outcome"]) == (4, "data-loss")
    skipped = {each["topic"]: each for each in summary["skipped"]}
    assert len(summary["skipped"]) == 2
    every, older = skipped["every"], skipped["older"]
    assert (every["start_offset"], every["end_offset"]) == (lost_offsets[0], lost_offsets[-1] + 1)
    assert older["start_offset"] in damaged_offsets
    assert older["end_offset"] == damaged_offsets[-1] + 1
    assert f"skipped every-0 [{every['start_offset']}, {every['end_offset']}) unreadable: " in (
        capsys.readouterr().out
    )
    for topic, each in skipped.items():
        left_out = range(each["start_offset"], each["end_offset"])
        sound = [offset for offset in whole[topic] if offset not in left_out]
        assert sorted(exported(output, topic)) == sound
        assert min(sound) < min(left_out) or topic == "older"
        assert max(sound) > max(left_out)

    before = {topic: exported(output, topic) for topic in whole}
    code, again = run(twins, store, output, "--option", "mode=permissive")
    assert (code, again["skipped"]) == (0, summary["skipped"])
    assert {topic: exported(output, topic) for topic in whole} == before
    assert len(list((output / "skipped").rglob("*.json"))) == 2

    code, restored = run(twins, twins.host.store, output)
    assert (code, restored["skipped"]) == (0, [])
    added = sum(
        sum(each["start_offset"] <= offset < each["end_offset"] for offset in whole[topic])
        for topic, each in skipped.items()
    )
    assert restored["counts"]["records"] == added
    assert {topic: sorted(exported(output, topic)) for topic in whole} == whole
    assert list((output / "skipped").rglob("*.json")) == []
    assert list((output / "_attempts").iterdir()) == []


@pytest.mark.usefixtures("codec")
def test_export_when_by_date_then_readers_see_topic_partition_and_date_and_offsets_ascend(
    spark: SparkSession, twins: TwinTopics, tmp_path: Path
) -> None:
    """Each file has one range; small segments are joined to one file."""
    output = tmp_path / "out"

    code, summary = run(twins, twins.host.store, output, "--partition-by", "date")

    assert code == 0
    assert summary["counts"]["ranges"] == 2
    rows = dataset.dataset(
        output / "data", partitioning="hive", exclude_invalid_files=True
    ).to_table()
    assert {"topic", "partition", "date"} <= set(rows.column_names)
    for date, time in zip(
        rows.column("date").to_pylist(), rows.column("timestamp").to_pylist(), strict=True
    ):
        assert date == time.astimezone(UTC).date().isoformat()
    by_spark = spark.read.parquet(str(output / "data"))
    found = Counter(row[0] for row in by_spark.select("topic").collect())
    dates = {row[0] for row in by_spark.select("date").distinct().collect()}
    for topic in ("every", "older"):
        assert sorted(exported(output, topic)) == stored(spark, twins, topic)
        assert found[topic] == len(exported(output, topic))
        files = list((output / "data").rglob(f"topic={topic}/**/*.parquet"))
        assert len({path.name.split("-part")[0] for path in files}) == 1
        assert len(files) <= len(dates)


def test_export_when_dry_then_what_would_be_is_said_and_nothing_is_changed(
    twins: TwinTopics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    sizes = ("--file-size", "1KiB")

    code, planned = run(twins, twins.host.store, output, *sizes, "--dry-run")

    said = capsys.readouterr().out
    assert code == 0
    assert not output.exists()
    assert "would export every-0 [0, " in said
    code, done = run(twins, twins.host.store, output, *sizes)
    counts = planned["counts"], done["counts"]
    assert counts[0]["files"] == counts[1]["files"] > 4
    assert run(twins, twins.host.store, output, *sizes, "--dry-run")[1]["outcome"] == (
        "nothing-to-do"
    )


def test_export_when_interrupted_then_exit_130_and_the_next_one_continues(
    spark: SparkSession, twins: TwinTopics, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    command = ("rlm-export", "--config", str(twins.host.config_path), "--file-size", "1")
    process = ServiceProcess(
        [str(Path(sys.executable).with_name(command[0])), *command[1:], "every,older", str(output)],
        log_path=tmp_path / "log",
        environment={
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": "--master local[1] --conf spark.ui.enabled=false pyspark-shell",
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
    )
    try:
        wait_until(lambda: "files left" in (tmp_path / "log").read_text(), 120.0, process.log_tail)
        process.signal_group(signal.SIGINT)
        code = process.wait(deadline_s=60.0)
    finally:
        process.kill(children=True)

    said = (tmp_path / "log").read_text()
    assert code == 130, said
    assert "Traceback" not in said
    assert run(twins, twins.host.store, output)[0] == 0
    for topic in ("every", "older"):
        assert sorted(exported(output, topic)) == stored(spark, twins, topic)
    assert run(twins, twins.host.store, output)[1]["outcome"] == "nothing-to-do"
