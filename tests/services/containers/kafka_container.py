"""A broker in a container of Kafka's image, started as the image starts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.services.containers.engine import Engine
from tests.services.containers.images import KAFKA
from tests.services.containers.service_container import ServiceContainer
from tests.services.kafka import KafkaBroker
from tests.services.running_server import RunningServer

_RUN = "/etc/kafka/docker/run"
_CONFIGURATION = "/mnt/shared/config/server.properties"
# Only the image's user may write to these directories of the image.
_HOME = "/opt/kafka"
_WRITTEN = ("config", "logs")


class KafkaContainer(KafkaBroker):
    """A node whose log directories are directories of this machine, under the same paths."""

    def __init__(self, directory: Path, *, engine: Engine, **settings: Any) -> None:
        """`settings` are those of a KafkaBroker, without JVM flags and without a launcher."""
        super().__init__(directory, **settings)
        self._engine = engine

    def _launch(self) -> RunningServer:
        written = [(self.directory / "image" / each, f"{_HOME}/{each}", "rw") for each in _WRITTEN]
        for path, _, _ in written:
            path.mkdir(parents=True, exist_ok=True)
        return ServiceContainer(
            self._engine,
            KAFKA,
            [_RUN],
            log_path=self.log_path,
            directory=self.directory,
            environment={"CLUSTER_ID": self.cluster_id, "KAFKA_HEAP_OPTS": "-Xms256m -Xmx256m"},
            mounts=[(self.configuration, _CONFIGURATION, "ro"), *written],
        )
