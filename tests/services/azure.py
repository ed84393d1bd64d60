"""A real Azure Blob Storage server on this machine: Azurite, which keeps all in memory.

`make setup` installs it.
"""

from __future__ import annotations

from pathlib import Path

from azure.storage.blob import ContainerClient

from tests.services.ports import free_ports, is_listening
from tests.services.process import ServiceProcess
from tests.services.service import Service
from tests.services.waiting import wait_until

_HOME = Path(__file__).resolve().parents[2] / "build" / "azurite"
_SCRIPT = _HOME / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"

# The account that every Azurite has, and its key, which is printed in its manual.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class AzureServer(Service):
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

    def connection_string(self, key: str = _KEY, *, url: str = "") -> str:
        """As the SDK takes it; `url` is another way to the server."""
        endpoint = f"{url or f'http://127.0.0.1:{self._port}'}/{_ACCOUNT}"
        return (
            f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={key};"
            f"BlobEndpoint={endpoint};"
        )

    def create_container(self, name: str) -> None:
        """Make an empty one."""
        with ContainerClient.from_connection_string(self.connection_string(), name) as container:
            container.create_container()

    def start(self) -> None:
        listen = ("--blobHost", "127.0.0.1", "--blobPort", str(self._port))
        quiet = ("--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry")
        self._process = ServiceProcess(
            ["node", str(_SCRIPT), *listen, *quiet],
            log_path=self._directory / "azurite.log",
            directory=self._directory,
        )
        wait_until(lambda: is_listening(self._port), 60.0, self._process.log_tail)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill(children=True)
