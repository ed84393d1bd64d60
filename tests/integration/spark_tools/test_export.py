"""`rlm-export` of a broker's tiered topics."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rsm.segment.errors import InvalidConfigError
from spark_tools.export.command import command_parser, export
from spark_tools.export.file_ranges import written_name
from spark_tools.export.manifest import Manifest
from spark_tools.spark.hadoop_files import HadoopFiles
from tests.integration.rlm.gateway.twin_topics import TwinTopics


def run(twins: TwinTopics, output: Path, *more: str) -> int:
    options = ("--config", str(twins.host.config_path), *more)
    return export(command_parser().parse_args([*options, "every", str(output)]))


def test_export_when_run_again_and_further_then_each_record_once(
    spark: SparkSession, twins: TwinTopics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first_end = '--option=endingOffsets={"every":{"0":17}}'
    config = ("config", str(twins.host.config_path))

    assert run(twins, tmp_path, first_end) == 0
    assert run(twins, tmp_path, first_end) == 0
    assert capsys.readouterr().out == (
        "every-0 [0, 17) 17\n"
        "nothing to export: earlier exports wrote all stored records of the chosen offsets\n"
    )
    assert run(twins, tmp_path) == 0

    stored = spark.read.format("rlm").option(*config).option("subscribe", "every").load()
    exported = spark.read.parquet(str(tmp_path / "data"))
    assert sorted(row["offset"] for row in exported.select("offset").collect()) == sorted(
        row["offset"] for row in stored.select("offset").collect()
    )
    assert exported.select("topic", "partition").distinct().collect() == [("every", 0)]


def test_export_when_another_kind_of_rows_is_asked_for_then_refused(
    twins: TwinTopics, tmp_path: Path
) -> None:
    run(twins, tmp_path, '--option=endingOffsets={"every":{"0":17}}')

    with pytest.raises(InvalidConfigError, match="another directory"):
        run(twins, tmp_path, "--option", "columns=offset,value")


def test_export_when_killed_before_its_files_were_in_place_then_the_next_puts_them_there(
    spark: SparkSession, twins: TwinTopics, tmp_path: Path
) -> None:
    """Files of an export that was killed earlier do not count."""
    files = HadoopFiles(spark, str(tmp_path))
    run(twins, tmp_path, '--option=endingOffsets={"every":{"0":17}}')
    (line,) = Manifest(files).lines()
    for name in line.files:
        files.move(f"{line.path}/{name}", f"_attempts/{line.attempt}/{written_name(name)}")
    files.write("_attempts/20200101T000000-other/part-0.parquet", "cut off")

    run(twins, tmp_path)

    offsets = [row["offset"] for row in spark.read.parquet(str(tmp_path / "data")).collect()]
    assert (
        len(offsets) == len(set(offsets)) == sum(e.records_count for e in Manifest(files).lines())
    )
    assert min(offsets) == 0
    assert files.names("_attempts") == []


def test_export_when_it_is_a_first_run_then_no_trace_of_java_and_few_lines(
    twins: TwinTopics, tmp_path: Path
) -> None:
    """The job starts as a user starts it: by its path, without naming Spark, in an empty folder."""
    program = str(Path(sys.executable).with_name("rlm-export"))
    options = ("--config", str(twins.host.config_path), "--option", "columns=offset,value")

    done = subprocess.run(
        [program, *options, "every", str(tmp_path / "out")],
        env={name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200.0,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("every-0 [0, ")
    # a warning of the JVM about an incubator module that Spark requests
    said = [line for line in done.stderr.splitlines() if "incubator modules" not in line]
    assert said == []


def test_export_when_the_user_is_wrong_then_one_line_and_exit_2(
    twins: TwinTopics, tmp_path: Path
) -> None:
    program = str(Path(sys.executable).with_name("rlm-export"))
    options = ("--config", str(twins.host.config_path), "--option", "colums=offset")

    done = subprocess.run(
        [program, *options, "every", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "rlm-export: the option is unknown (option=colums, did_you_mean=columns)\n"
    )
