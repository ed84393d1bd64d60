"""What is told of a Spark that can't do its work; a stand-in says what Spark says then."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rsm.segment.errors import InvalidConfigError
from spark_tools.job_session import job_session, require_connector

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
def test_connector_when_absent_or_of_another_version_then_told_with_sparks(
    error: Exception, reason: str
) -> None:
    spark = cast("SparkSession", FailingSpark(error))

    with pytest.raises(InvalidConfigError, match="not of this Spark's version") as raised:
        require_connector(spark)

    assert reason in str(raised.value)
    assert "spark=4.0.0" in str(raised.value)


def test_session_when_there_are_no_jars_then_told_before_spark_starts(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidConfigError, match="no jars in that directory"),
        job_session("rlm-repair", jars=str(tmp_path)),
    ):
        pass
