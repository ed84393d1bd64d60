"""The engine for containers that services run on: Docker, or Podman with its socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException
from testcontainers.core.config import testcontainers_config
from testcontainers.core.docker_client import get_docker_host

from tests.containers import local_engine
from tests.services.service import ServiceMissingError

_UNIX = "unix://"
_STARTER = "kafka-rlm.tests.starter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine that answered at `url`. In a rootless one, root is the user of this process."""

    url: str
    is_rootless: bool

    @property
    def client_arguments(self) -> dict[str, Any]:
        """The arguments of the SDK's client."""
        return {"environment": {"DOCKER_HOST": self.url}}

    @property
    def user(self) -> str:
        """The container user; it and this process may use each other's files."""
        return "0:0" if self.is_rootless else f"{os.getuid()}:{os.getgid()}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of a container that this process starts."""
        return {_STARTER: str(os.getpid())}

    def remove_leftovers(self) -> None:
        """Remove the containers that ended processes have left."""
        with closing(docker.from_env(**self.client_arguments)) as client:
            filters = {"label": _STARTER}
            for each in client.containers.list(all=True, filters=filters, ignore_removed=True):
                if not Path("/proc", each.labels[_STARTER]).exists():
                    # Another process may remove this container at the same time.
                    with suppress(APIError):
                        each.remove(force=True, v=True)


def find_engine() -> Engine:
    """Return the first engine that answers. Raises ServiceMissingError with the reasons."""
    # Otherwise testcontainers starts Ryuk, one more container, which removes the others.
    testcontainers_config.ryuk_disabled = True
    reasons = []
    for url in _urls(os.environ):
        try:
            _connect(url)
            with closing(docker.from_env(environment={"DOCKER_HOST": url})) as client:
                security = client.info().get("SecurityOptions") or []
        except (DockerException, OSError) as error:
            reasons.append(f"{url}: {error}")
        else:
            return Engine(url=url, is_rootless=any("rootless" in each for each in security))
    raise ServiceMissingError(
        "cannot run services in containers: no engine answers"
        f" ({'; '.join(reasons) or 'no socket of Docker or Podman'})."
        " Start Docker or Podman's socket, name it in DOCKER_HOST, or set one up with"
        " `make containers-here`; or use --services=processes."
    )


def _urls(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the addresses to try: the configured one, or else every usual socket."""
    configured = get_docker_host() or environment.get("CONTAINER_HOST")
    if configured:
        yield configured
        return
    user_sockets = Path(environment.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}"))
    for path in (
        local_engine.SOCKET,
        Path("/var/run/docker.sock"),
        user_sockets / "docker.sock",
        user_sockets / "podman" / "podman.sock",
        Path("/run/podman/podman.sock"),
    ):
        if path.exists():
            yield f"{_UNIX}{path}"


def _connect(url: str) -> None:
    """Raise OSError if nothing listens at a socket; the SDK would leak its own socket then."""
    if url.startswith(_UNIX):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(url.removeprefix(_UNIX))
