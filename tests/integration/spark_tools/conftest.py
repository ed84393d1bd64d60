"""One Spark session for all, one broker whose topics are in a store, and the plain consumer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pyspark
import pytest
from packaging.version import Version
from pyspark.sql import SparkSession

from rsm.segment.ids import TopicIdPartition
from rsm.storage.bindings import open_storage
from rsm.storage.s3.settings import S3Settings
from spark_tools.data_source import register
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.crafted_logs import every_kind_of_batch, older_formats
from tests.integration.rlm.gateway.twin_topics import TwinTopics, make_twins
from tests.integration.spark_tools.repair_world import RepairWorld
from tests.services.kafka import KafkaCluster
from tests.services.kafka_runtime import SHORT_LIVED_JVM
from tests.services.provider import ServiceProvider
from tests.services.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from tests.services.spark_jars import CONNECTOR, connector_jars

_BUCKET = "segments"
_HERE = Path(__file__).resolve().parent
# The first test starts Spark and a broker, which takes long on a loaded machine.
_TIMEOUT_S = 300


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give the tests of this folder more time; deselect those that need a newer Spark."""
    left_out = []
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))
            since = item.get_closest_marker("since_spark")
            if since is not None and Version(pyspark.__version__) < Version(since.args[0]):
                left_out.append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="package")
def connector() -> Path:
    """The directory of the jars of Spark's Kafka connector."""
    return CONNECTOR


@pytest.fixture(scope="package", autouse=True)
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of two cores in one process; Python workers are separate processes.

    All tests use it, because a job that a test runs in this process uses the active session.
    Without one, the job would start Spark's JVM, and a JVM keeps the jars with which it was
    started. Programs that tests start inherit the environment that is set here.
    """
    directory = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(SHORT_LIVED_JVM)
    os.environ["AWS_ACCESS_KEY_ID"] = ACCESS_KEY
    os.environ["AWS_SECRET_ACCESS_KEY"] = SECRET_KEY
    session = (
        SparkSession.builder.config("spark.master", "local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", ",".join(connector_jars()))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", str(directory))
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    yield session
    session.stop()


@pytest.fixture(scope="package")
def twins(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TwinTopics]:
    """Topics that are mostly in the store, and their twins, which are complete at the broker."""
    directory: Path = tmp_path_factory.mktemp("twins")
    logs = {
        "every": every_kind_of_batch(),
        "older": older_formats(),
        "streamed": every_kind_of_batch(),
    }
    with services.kafka(directory / "kafka") as cluster:
        host = BrokerHost(directory / "host", cluster, metadata_topic="twins-metadata")
        yield make_twins(host, logs, streamed=["streamed"])


@pytest.fixture(scope="package")
def s3_server(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[S3Server]:
    with services.s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="package")
def bucket(s3_server: S3Server) -> S3Settings:
    s3_server.create_bucket(_BUCKET)
    return S3Settings(
        bucket=_BUCKET, endpoint_url=s3_server.url, region="us-east-1", path_style=True
    )


@pytest.fixture
def host(kafka: KafkaCluster, tmp_path: Path, topic_name: str) -> BrokerHost:
    return BrokerHost(tmp_path / "host", kafka, metadata_topic=f"{topic_name}-md")


@pytest.fixture
def world(host: BrokerHost, bucket: S3Settings, topic_name: str) -> Iterator[RepairWorld]:
    dead_letters = f"{topic_name}-letters"
    host.cluster.create_topic(dead_letters)
    options = {
        "bootstrap.servers": host.cluster.bootstrap_servers,
        "remote.delete.dead.letter.topic": dead_letters,
        "rlmm.config.remote.log.metadata.topic.name": f"{topic_name}-md",
        "rsm.config.key.prefix": topic_name,
        "rsm.config.storage.backend": "s3",
        "rsm.config.storage.s3.bucket.name": bucket.bucket,
        "rsm.config.storage.s3.endpoint.url": bucket.endpoint_url or "",
        "rsm.config.storage.s3.path.style.access.enabled": "true",
        "rsm.config.storage.s3.region": "us-east-1",
    }
    with closing(open_storage(bucket)) as storage:
        yield RepairWorld(
            options=options,
            settings=bucket,
            storage=storage,
            servers=host.cluster.bootstrap_servers,
            dead_letters=dead_letters,
            partition=TopicIdPartition(topic_id=uuid4(), topic=topic_name, partition=0),
        )
