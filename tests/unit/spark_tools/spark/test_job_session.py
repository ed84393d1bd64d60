"""The errors for a Spark that cannot do its work; a stand-in raises Spark's errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import pyspark
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rsm.segment.errors import InvalidConfigError
from rsm.storage.s3.settings import S3Settings
from rsm.storage.settings import FilesystemSettings
from spark_tools.spark.job_session import (
    environment_of,
    job_session,
    require_connector,
    require_connector_jar,
    require_reachable,
)

DO_NOT_FIT = (
    "An error occurred while calling o7.load.\n: java.lang.NoSuchMethodError: 'scala.X'\n\tat y"
)


class FailingSpark:
    """Fails whatever it is asked to read."""

    version = "4.0.0"

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def read(self) -> object:
        raise self._error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PySparkException("Failed to find the data source: kafka.\n at z"), "data source: kafka"),
        (Py4JError(DO_NOT_FIT), "java.lang.NoSuchMethodError: 'scala.X'"),
    ],
)
def test_connector_when_absent_or_of_another_version_then_reported_with_sparks(
    error: Exception, reason: str
) -> None:
    spark = cast("SparkSession", FailingSpark(error))

    with pytest.raises(InvalidConfigError, match="version differs from Spark's") as raised:
        require_connector(spark)

    assert reason in str(raised.value)
    assert "spark=4.0.0" in str(raised.value)


@pytest.mark.parametrize("names", [(), ("spark-sql-kafka-0-10_2.13-1.0.0.jar",)])
def test_connector_when_its_jar_is_not_there_then_reported_before_spark_starts(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).touch()

    with pytest.raises(InvalidConfigError, match="connector is missing") as raised:
        require_connector_jar(str(tmp_path))

    assert (names or (str(tmp_path),))[0] in str(raised.value)
    assert f"{pyspark.__version__}.jar" in str(raised.value)


def test_connector_when_its_jar_is_there_then_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / f"spark-sql-kafka-0-10_2.13-{pyspark.__version__}.jar").touch()

    require_connector_jar(str(tmp_path))


class SparkOf:
    """A session with this master."""

    def __init__(self, master: str) -> None:
        self.conf = {"spark.master": master}


def test_store_when_executors_can_not_reach_a_directory_then_names_it(tmp_path: Path) -> None:
    spark = cast("SparkSession", SparkOf("spark://cluster:7077"))

    with pytest.raises(InvalidConfigError, match="cannot use a directory as the store") as raised:
        require_reachable(spark, FilesystemSettings(root=tmp_path))

    assert str(tmp_path) in str(raised.value)
    assert "spark://cluster:7077" in str(raised.value)


def test_store_when_executors_can_reach_it_then_nothing_is_said(tmp_path: Path) -> None:
    bucket = S3Settings(bucket="segments")

    for master in ("local[*]", "local-cluster[2,1,512]"):
        require_reachable(cast("SparkSession", SparkOf(master)), FilesystemSettings(root=tmp_path))
    require_reachable(cast("SparkSession", SparkOf("yarn")), bucket)


def test_session_when_there_are_no_jars_then_reported_before_spark_starts(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidConfigError, match="the directory contains none"),
        job_session("rlm-repair", jars=str(tmp_path)),
    ):
        pass


def test_environment_when_the_user_said_nothing_then_this_python_and_errors_only() -> None:
    added = environment_of({"SPARK_SUBMIT_OPTS": "-Xmx1g"})

    assert added["PYSPARK_PYTHON"] == sys.executable
    # If an option comes twice, the JVM uses the second one, which is the user's.
    log_settings, users = added["SPARK_SUBMIT_OPTS"].split(" ")
    path = Path(log_settings.removeprefix("-Dlog4j2.configurationFile=file://"))
    assert "rootLogger.level = error" in path.read_text()
    assert users == "-Xmx1g"


def test_environment_when_the_user_has_settings_then_they_win(tmp_path: Path) -> None:
    elsewhere = {"SPARK_CONF_DIR": str(tmp_path)}

    assert "PYSPARK_PYTHON" not in environment_of({"PYSPARK_PYTHON": "python3"})
    assert environment_of({"PYSPARK_GATEWAY_PORT": "4711"}) == {}
    assert list(environment_of(elsewhere)) == ["SPARK_SUBMIT_OPTS"]
    (tmp_path / "log4j2.properties").touch()
    assert environment_of(elsewhere) == {}
