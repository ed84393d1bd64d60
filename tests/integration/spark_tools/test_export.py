"""`rlm-export` of what a broker has tiered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from rsm.segment.errors import InvalidConfigError
from spark_tools.export.command import command_parser, export
from spark_tools.export.file_ranges import written_name
from spark_tools.export.manifest import Manifest
from spark_tools.spark.hadoop_files import HadoopFiles
from tests.integration.rlm.gateway.twin_topics import TwinTopics
from tests.services.kafka_runtime import SHORT_LIVED_JVM

_CHECKOUT = Path(__file__).resolve().parents[3]


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
        "every-0 [0, 17) 17\nnothing to export: all that is stored was exported before\n"
    )
    assert run(twins, tmp_path) == 0

    stored = spark.read.format("rlm").option(*config).option("subscribe", "every").load()
    exported = spark.read.parquet(str(tmp_path / "data"))
    assert sorted(row["offset"] for row in exported.select("offset").collect()) == sorted(
        row["offset"] for row in stored.select("offset").collect()
    )
    assert exported.select("topic", "partition").distinct().collect() == [("every", 0)]


@pytest.mark.usefixtures("spark")
def test_export_when_another_kind_of_rows_is_asked_for_then_refused(
    twins: TwinTopics, tmp_path: Path
) -> None:
    run(twins, tmp_path, '--option=endingOffsets={"every":{"0":17}}')

    with pytest.raises(InvalidConfigError, match="another directory"):
        run(twins, tmp_path, "--option", "columns=offset,value")


def test_export_when_killed_before_its_files_were_in_place_then_the_next_puts_them_there(
    spark: SparkSession, twins: TwinTopics, tmp_path: Path
) -> None:
    """And what one that was killed earlier has written counts as nothing."""
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


@pytest.mark.parametrize(
    "sent", ["This packs all of it, and sends it to the executors:", "sent, as a zip:"]
)
def test_export_when_submitted_to_a_cluster_as_the_docs_show_then_the_same(
    twins: TwinTopics, tmp_path: Path, worker_directories: Path, sent: str
) -> None:
    """Executors are processes of their own here, too."""
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.ui.enabled false\n"
        "spark.executor.memory 512m\n"
        "spark.log.level WARN\n"
        f"spark.executor.extraJavaOptions {' '.join(SHORT_LIVED_JVM)}\n"
    )
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(tmp_path),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    for ours in ("NUMBA_CACHE_DIR", "PYTHONPYCACHEPREFIX"):
        environment.pop(ours, None)
    command = documented_commands(sent)
    for documented, here in (
        ("spark://master:7077", "'local-cluster[1,1,512]'"),
        ("rlm.properties", str(twins.host.config_path)),
        (" orders ", " --option columns=offset,value every "),
        ("s3a://lake/kafka", str(tmp_path / "out")),
    ):
        assert documented in command
        command = command.replace(documented, here)

    done = subprocess.run(
        ["/bin/sh", "-ec", command],
        env=environment,
        cwd=_CHECKOUT,
        capture_output=True,
        text=True,
        timeout=280.0,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    stored = twins["every"].log.local_start_offset
    assert "every-0 [0, " in done.stdout
    files = parquet.read_table(tmp_path / "out" / "data").column("offset").to_pylist()
    assert len(files) == len(set(files))
    assert max(files) < stored + 20
    compiled = {path.relative_to(worker_directories).parts[2] for path in _kept(worker_directories)}
    assert compiled == ({"environment"} if "--archives" in command else set())


@pytest.fixture
def worker_directories() -> Iterator[Path]:
    """Where workers of `local-cluster` unpack what they are sent; removed afterwards."""
    directory = Path(pyspark.__file__).parent / "work"
    shutil.rmtree(directory, ignore_errors=True)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def _kept(directory: Path) -> list[Path]:
    """Code that numba compiled and keeps: below application, executor, and what holds it."""
    return sorted(directory.glob("*/*/*/**/record_kernel.*.nbc"))


def documented_commands(after: str) -> str:
    """The lines of a shell that docs/spark.md has after a sentence."""
    text = (_CHECKOUT / "docs" / "spark.md").read_text()
    block = text.split(f"{after}\n\n", 1)[1].split("\n\n", 1)[0]
    assert all(line.startswith("    ") for line in block.splitlines())
    return "\n".join(line.removeprefix("    ") for line in block.splitlines())


def test_export_when_it_is_a_first_run_then_no_trace_of_java_and_few_lines(
    twins: TwinTopics, tmp_path: Path
) -> None:
    """As a user starts it: by its path, without naming Spark, in a directory of its own."""
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
    # Of the JVM itself, about a module in trial that Spark asks for.
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
    assert done.stderr == "rlm-export: unknown option (option=colums, nearest=columns)\n"
