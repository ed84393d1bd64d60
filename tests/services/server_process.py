"""A server of one program that a test starts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tests.services.ports import free_ports, is_listening
from tests.services.process import ServiceProcess
from tests.services.running_server import RunningServer
from tests.services.service import Service, ServiceError
from tests.services.waiting import wait_until


class ServerProcess(Service):
    """A server that runs within its `with` block, in `directory`. Not thread-safe."""

    name: ClassVar[str]
    """The name of its log."""

    start_deadline_s: ClassVar[float] = 20.0

    def __init__(self, directory: Path) -> None:
        """Keep the log and other files of the server in `directory`, which is created."""
        self._directory = directory.resolve()
        self._directory.mkdir(parents=True, exist_ok=True)
        (self._port,) = free_ports(1)
        self._process: RunningServer | None = None

    @property
    def log_path(self) -> Path:
        """The file of its output."""
        return self._directory / f"{self.name}.log"

    @property
    def port(self) -> int:
        """The port of 127.0.0.1 that it listens on."""
        return self._port

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._process = self._launch()
        try:
            wait_until(self._is_ready, self.start_deadline_s, self._process.log_tail)
        except AssertionError as late:
            raise ServiceError(f"{self.name} on port {self._port}: {late}") from None

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill(children=True)

    def _launch(self) -> RunningServer:
        """Start the server without waiting for it: a process, unless a subclass does otherwise."""
        return ServiceProcess(
            self._command(),
            log_path=self.log_path,
            environment=self._environment(),
            directory=self._directory,
        )

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """Return the command to run on this machine."""

    def _environment(self) -> Mapping[str, str]:
        """Return variables to add to this process's environment."""
        return {}

    def _is_ready(self) -> bool:
        """Return whether tests may ask it now."""
        return is_listening(self._port)
