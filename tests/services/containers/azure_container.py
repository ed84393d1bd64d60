"""Azurite in a container of its image."""

from __future__ import annotations

from pathlib import Path

from tests.services.azure import AzureServer
from tests.services.containers.engine import Engine
from tests.services.containers.images import AZURITE
from tests.services.containers.service_container import ServiceContainer
from tests.services.running_server import RunningServer

_PROGRAM = "azurite-blob"


class AzureContainer(AzureServer):
    """A server that keeps all in the container's memory."""

    def __init__(self, directory: Path, *, engine: Engine) -> None:
        super().__init__(directory)
        self._engine = engine

    def _launch(self) -> RunningServer:
        return ServiceContainer(
            self._engine,
            AZURITE,
            [_PROGRAM, *self._arguments()],
            log_path=self.log_path,
            directory=self._directory,
        )
