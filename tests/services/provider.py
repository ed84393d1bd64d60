"""Makes the servers of tests, as processes of this machine or in containers.

A test asks the fixture `services` for a server, and sees no difference between the two: addresses,
directories, signals and logs are the same. A test that needs a process (a wrapper around its
command, flags of its JVM, log lines that an image filters) makes the server itself;
tests/architecture/test_services.py lists those with their reasons.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tests.services.kafka import KafkaCluster
from tests.services.service import ServiceMissingError

# Only a run with a store needs that store's SDK and program (tests.run_needs).
if TYPE_CHECKING:
    from tests.services.azure import AzureServer
    from tests.services.gcs import GcsServer
    from tests.services.hdfs import HdfsCluster
    from tests.services.s3 import S3Server

PROCESSES, CONTAINERS = "processes", "containers"


class ServiceProvider(ABC):
    """Makes servers, each of which runs within its `with` block. Not thread-safe."""

    name: ClassVar[str]
    """Its name in `--services`."""

    @abstractmethod
    def s3(self, directory: Path) -> S3Server:
        """Make an S3 server that keeps its objects below `directory`."""

    @abstractmethod
    def azure(self, directory: Path) -> AzureServer:
        """Make an Azure Blob Storage server; only its log is in `directory`."""

    @abstractmethod
    def gcs(self, directory: Path) -> GcsServer:
        """Make a stand-in for Google Cloud Storage; only its log is in `directory`."""

    @abstractmethod
    def hdfs(self, directory: Path) -> HdfsCluster:
        """Make an HDFS of one data node; its log is in `directory`, its data is gone at its end."""

    @abstractmethod
    def kafka(
        self,
        directory: Path,
        *,
        brokers: int = 1,
        log_dirs_per_broker: int = 1,
        properties: Mapping[str, str] | None = None,
    ) -> KafkaCluster:
        """Make a cluster whose brokers have their logs below `directory`, as KafkaCluster says."""


class ProcessProvider(ServiceProvider):
    """Starts programs that `make services` installs."""

    name = PROCESSES

    def s3(self, directory: Path) -> S3Server:
        from tests.services.s3 import S3Server  # noqa: PLC0415

        return S3Server(directory)

    def azure(self, directory: Path) -> AzureServer:
        from tests.services.azure import AzureServer  # noqa: PLC0415

        return AzureServer(directory)

    def gcs(self, directory: Path) -> GcsServer:
        from tests.services.gcs import GcsServer  # noqa: PLC0415

        return GcsServer(directory)

    def hdfs(self, directory: Path) -> HdfsCluster:
        from tests.services.hdfs import HdfsCluster  # noqa: PLC0415

        return HdfsCluster(directory)

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
        )


def provider_named(name: str | None) -> ServiceProvider:
    """Return the provider of that name; without one, containers if an engine answers.

    Raises ServiceMissingError if the name is `containers` and no engine answers.
    """
    if name == PROCESSES:
        return ProcessProvider()
    # A run on processes does not need the libraries for containers.
    from tests.services.containers.provider import open_container_provider  # noqa: PLC0415

    try:
        return open_container_provider()
    except ServiceMissingError:
        if name == CONTAINERS:
            raise
        return ProcessProvider()
