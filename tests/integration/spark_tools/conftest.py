"""One Spark session for all, one broker whose topics are in a store, and the plain consumer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_tools.data_source import register
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.crafted_logs import every_kind_of_batch, older_formats
from tests.integration.rlm.gateway.twin_topics import TwinTopics, make_twins
from tests.services.kafka import KafkaCluster
from tests.services.s3 import ACCESS_KEY, SECRET_KEY, S3Server

_CONNECTOR = Path(__file__).resolve().parents[3] / "build" / "spark-jars"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores in one process; Python workers are processes of their own."""
    directory = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["AWS_ACCESS_KEY_ID"] = ACCESS_KEY
    os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET_KEY
    jars = sorted(str(path) for path in _CONNECTOR.glob("*.jar"))
    session = (
        SparkSession.builder.config("spark.master", "local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", ",".join(jars))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", str(directory))
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwinTopics]:
    """Topics that are in the store for the greater part, and their twins, whole at the broker."""
    directory: Path = tmp_path_factory.mktemp("twins")
    logs = {"every": every_kind_of_batch(), "older": older_formats()}
    with KafkaCluster(directory / "kafka") as cluster:
        host = BrokerHost(directory / "host", cluster, metadata_topic="twins-metadata")
        yield make_twins(host, logs)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server
