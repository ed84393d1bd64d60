"""Servers in containers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.services.containers.azure_container import AzureContainer
from tests.services.containers.engine import Engine, find_engine
from tests.services.containers.gcs_container import GcsContainer
from tests.services.containers.hdfs_container import HdfsContainer
from tests.services.containers.kafka_container import KafkaContainer
from tests.services.containers.s3_container import S3Container
from tests.services.kafka import KafkaCluster
from tests.services.provider import CONTAINERS, ServiceProvider


class ContainerProvider(ServiceProvider):
    """Starts containers of one engine."""

    name = CONTAINERS

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def s3(self, directory: Path) -> S3Container:
        return S3Container(directory, engine=self._engine)

    def azure(self, directory: Path) -> AzureContainer:
        return AzureContainer(directory, engine=self._engine)

    def gcs(self, directory: Path) -> GcsContainer:
        return GcsContainer(directory, engine=self._engine)

    def hdfs(self, directory: Path) -> HdfsContainer:
        return HdfsContainer(directory, engine=self._engine)

    def kafka(
        self,
        directory: Path,
        *,
        brokers: int = 1,
        log_dirs_per_broker: int = 1,
        properties: Mapping[str, str] | None = None,
    ) -> KafkaCluster:
        return KafkaCluster(
            directory,
            brokers=brokers,
            log_dirs_per_broker=log_dirs_per_broker,
            properties=properties,
            new_broker=partial(KafkaContainer, engine=self._engine),
        )


def open_container_provider() -> ContainerProvider:
    """Find an engine, and remove containers of ended runs. Raises ServiceMissingError."""
    engine = find_engine()
    engine.remove_leftovers()
    return ContainerProvider(engine)
