"""A stand-in for Google Cloud Storage on this machine: fake-gcs-server.

It keeps all data in memory, and checks no credentials. `make services` builds it.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.services.server_process import ServerProcess
from tests.services.service import Needs, installed

_PROGRAM = Path(__file__).resolve().parents[2] / "build" / "fake-gcs" / "fake-gcs-server"
NEEDS = Needs(installed=(_PROGRAM,))


class GcsServer(ServerProcess):
    """A server that runs within its `with` block. Not thread-safe."""

    name = "fake-gcs"

    def create_bucket(self, name: str) -> None:
        """Create an empty bucket."""
        request = urllib.request.Request(  # noqa: S310 - of a local server
            f"{self.url}/storage/v1/b",
            json.dumps({"name": name}).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request).close()  # noqa: S310

    def _command(self) -> Sequence[str]:
        return [installed(_PROGRAM), *self._arguments()]

    def _arguments(self) -> Sequence[str]:
        """Return the arguments of the server's program."""
        listen = ("-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port))
        return [*listen, "-backend", "memory", "-log-level", "warn"]
