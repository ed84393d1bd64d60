"""Calls the engine's own interface where compose has no command, or a slow one.

A command of compose takes a second more of processor time, which the brokers then lack.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from tempfile import TemporaryFile

import docker
from docker import DockerClient
from docker.errors import DockerException
from docker.models.containers import Container

from tests.containers.image_content import image_content
from tests.services.containers.engine import Engine
from tests.services.service import ServiceError

_RESPONSE_S = 180
_OF_PROJECT = "com.docker.compose.project"
_OF_SERVICE = "com.docker.compose.service"


class StackEngine:
    """The engine's own names of a compose project's network and volumes. Not thread-safe."""

    def __init__(self, engine: Engine, project: str) -> None:
        """`project` is the name of the compose project."""
        self._arguments = engine.client_arguments
        self._project = project

    def run_in(self, service: str, *command: str) -> str:
        """Run a command in a service's container; return its output. Raises ServiceError."""
        with self._client() as client:
            try:
                done = self._container(client, service).exec_run(list(command), demux=True)
            except DockerException as error:
                raise ServiceError(f"{service} cannot run {command[0]}: {error}") from error
        output, errors = ((each or b"").decode() for each in done.output)
        if done.exit_code:
            raise ServiceError(f"{' '.join(command)} failed in {service}: {errors}{output}")
        return output

    @contextmanager
    def cut_off(self, service: str) -> Iterator[None]:
        """Take a service's container off the network until the block ends.

        Packets to it are lost, as after a cable was pulled. The container comes back under its
        name, but the engine may give it another address.
        """
        with self._client() as client:
            network = client.networks.get(f"{self._project}_default")
            container = self._container(client, service)
            network.disconnect(container)
            try:
                yield
            finally:
                network.connect(container, aliases=[service])

    def remove_volumes(self, *names: str) -> None:
        """Remove volumes by their names in the compose file. No container may have them."""
        with self._client() as client:
            for name in names:
                client.volumes.get(f"{self._project}_{name}").remove()

    def image_content(self, image: str) -> Iterator[tuple[str, bytes]]:
        """Yield names and content of all files of an image; see tests.containers.image_content."""
        with self._client() as client, TemporaryFile() as saved:
            for chunk in client.images.get(image).save():
                saved.write(chunk)
            saved.seek(0)
            yield from image_content(saved)

    @contextmanager
    def _client(self) -> Iterator[DockerClient]:
        with closing(docker.from_env(timeout=_RESPONSE_S, **self._arguments)) as client:
            yield client

    def _container(self, client: DockerClient, service: str) -> Container:
        labels = [f"{_OF_PROJECT}={self._project}", f"{_OF_SERVICE}={service}"]
        running = client.containers.list(filters={"label": labels}, ignore_removed=True)
        if len(running) != 1:
            raise ServiceError(f"{service} has {len(running)} containers, not one")
        return running[0]
