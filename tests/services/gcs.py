"""A stand-in for Google Cloud Storage on this machine: fake-gcs-server, which keeps all in memory.

`make setup` builds it. It asks nobody for credentials.
"""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from tests.services.ports import free_ports, is_listening
from tests.services.process import ServiceProcess
from tests.services.service import Service
from tests.services.waiting import wait_until

_PROGRAM = Path(__file__).resolve().parents[2] / "build" / "fake-gcs" / "fake-gcs-server"


class GcsServer(Service):
    """Runs within its `with` block. Not thread-safe."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        (self._port,) = free_ports(1)
        self._process: ServiceProcess | None = None

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return self._port

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self._port}"

    def create_bucket(self, name: str) -> None:
        """Make an empty one."""
        request = urllib.request.Request(  # noqa: S310 - of our own server
            f"{self.url}/storage/v1/b",
            json.dumps({"name": name}).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request).close()  # noqa: S310

    def start(self) -> None:
        listen = ("-scheme", "http", "-host", "127.0.0.1", "-port", str(self._port))
        self._process = ServiceProcess(
            [str(_PROGRAM), *listen, "-backend", "memory", "-log-level", "warn"],
            log_path=self._directory / "fake-gcs.log",
        )
        wait_until(lambda: is_listening(self._port), 20.0, self._process.log_tail)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
