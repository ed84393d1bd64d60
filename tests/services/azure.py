"""An Azure Blob Storage server on this machine: Azurite, which keeps all in memory.

`make services` installs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from azure.storage.blob import ContainerClient

from tests.services.server_process import ServerProcess
from tests.services.service import Needs, installed, program

_HOME = Path(__file__).resolve().parents[2] / "build" / "azurite"
_SCRIPT = _HOME / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
NEEDS = Needs(programs=("node",), installed=(_SCRIPT,))

# The account that every Azurite has, and its key, both from its manual.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class AzureServer(ServerProcess):
    """A server that runs within its `with` block. Not thread-safe."""

    name = "azurite"
    start_deadline_s = 60.0

    def connection_string(self, key: str = _KEY, *, url: str = "") -> str:
        """Return the connection string for the SDK; `url` is another address of the server."""
        endpoint = f"{url or self.url}/{_ACCOUNT}"
        return (
            f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={key};"
            f"BlobEndpoint={endpoint};"
        )

    def create_container(self, name: str) -> None:
        """Create an empty container."""
        with ContainerClient.from_connection_string(self.connection_string(), name) as container:
            container.create_container()

    def metadata_of(self, container: str, blob: str) -> Mapping[str, str]:
        """Return the metadata that the blob itself has."""
        with ContainerClient.from_connection_string(self.connection_string(), container) as client:
            return client.get_blob_client(blob).get_blob_properties().metadata or {}

    def _command(self) -> Sequence[str]:
        return [program("node"), installed(_SCRIPT), *self._arguments()]

    def _arguments(self) -> Sequence[str]:
        """Return the arguments of the server's program."""
        listen = ("--blobHost", "127.0.0.1", "--blobPort", str(self.port))
        quiet = ("--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry")
        return [*listen, *quiet]
