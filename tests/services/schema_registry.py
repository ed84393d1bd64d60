"""A schema registry on this machine: Apicurio Registry, by Confluent's REST API, all in memory.

`make services` fetches it.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.services.server_process import ServerProcess
from tests.services.service import Needs, installed, program

_DIRECTORY = Path(__file__).resolve().parents[2] / "build" / "schema-registry"
NEEDS = Needs(programs=("java",), installed=(_DIRECTORY,))
_PROGRAM = "apicurio-registry-app-*-runner.jar"
_REQUEST_TIMEOUT_S = 5.0


class SchemaRegistryServer(ServerProcess):
    """A server that runs within its `with` block. Not thread-safe."""

    name = "schema-registry"
    start_deadline_s = 120.0

    @property
    def registry_url(self) -> str:
        """Return the value of `schema.registry.url`."""
        return f"{self.url}/apis/ccompat/v7"

    def _command(self) -> Sequence[str]:
        jar = next(_DIRECTORY.glob(_PROGRAM), _DIRECTORY / _PROGRAM)
        java = [program("java"), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        return [*java, "-jar", installed(jar)]

    def _environment(self) -> Mapping[str, str]:
        return {"QUARKUS_HTTP_PORT": str(self.port), "QUARKUS_HTTP_HOST": "127.0.0.1"}

    def _is_ready(self) -> bool:
        """Return whether it answers; it listens before its storage exists."""
        try:
            asked = urllib.request.urlopen(  # noqa: S310 - of a local server
                f"{self.registry_url}/subjects", timeout=_REQUEST_TIMEOUT_S
            )
            with asked as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
