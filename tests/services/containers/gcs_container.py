"""fake-gcs-server in a container of its image."""

from __future__ import annotations

from pathlib import Path

from tests.services.containers.engine import Engine
from tests.services.containers.images import FAKE_GCS
from tests.services.containers.service_container import ServiceContainer
from tests.services.gcs import GcsServer
from tests.services.running_server import RunningServer

_PROGRAM = "fake-gcs-server"


class GcsContainer(GcsServer):
    """A server that keeps all in the container's memory."""

    def __init__(self, directory: Path, *, engine: Engine) -> None:
        super().__init__(directory)
        self._engine = engine

    def _launch(self) -> RunningServer:
        return ServiceContainer(
            self._engine,
            FAKE_GCS,
            [_PROGRAM, *self._arguments()],
            log_path=self.log_path,
            directory=self._directory,
        )
