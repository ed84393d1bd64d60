"""`rlm-export` of what a broker has tiered."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_tools.export.command import command_parser, export
from tests.integration.rlm.gateway.twin_topics import TwinTopics

# The first of them starts Spark and a broker, which takes its time on a loaded machine.
pytestmark = pytest.mark.timeout(300)


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
    assert capsys.readouterr().out == "every-0 [0, 17) 17\n"
    assert run(twins, tmp_path) == 0

    stored = spark.read.format("rlm").option(*config).option("subscribe", "every").load()
    exported = spark.read.parquet(str(tmp_path / "data"))
    assert sorted(row["offset"] for row in exported.select("offset").collect()) == sorted(
        row["offset"] for row in stored.select("offset").collect()
    )
    assert exported.select("topic", "partition").distinct().collect() == [("every", 0)]
