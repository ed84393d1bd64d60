"""The S3 server in a container of its image."""

from __future__ import annotations

from pathlib import Path

from tests.services.containers.engine import Engine
from tests.services.containers.images import STORE
from tests.services.containers.service_container import ServiceContainer
from tests.services.running_server import RunningServer
from tests.services.s3 import S3Server

_PROGRAM = "versitygw"


class S3Container(S3Server):
    """A server whose buckets are directories of this machine."""

    def __init__(self, directory: Path, *, engine: Engine) -> None:
        super().__init__(directory)
        self._engine = engine

    def _launch(self) -> RunningServer:
        return ServiceContainer(
            self._engine,
            STORE,
            [_PROGRAM, *self._arguments()],
            log_path=self.log_path,
            directory=self._directory,
            environment=self._environment(),
        )

    def _run_tool(self, *arguments: str) -> None:
        assert isinstance(self._process, ServiceContainer)
        self._process.run([_PROGRAM, *arguments])
