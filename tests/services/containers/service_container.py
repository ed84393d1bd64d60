"""One container of a test: started, signalled, and never left running.

The container uses this machine's network, so that it has the same addresses as a process, and
directories of this machine under their own paths. A watcher kills it if this process ends.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docker.errors import APIError
from requests.exceptions import RequestException
from testcontainers.core.container import DockerContainer

from tests.services.containers import images
from tests.services.containers.engine import Engine
from tests.services.process import Watcher, tail
from tests.services.running_server import RunningServer
from tests.services.service import ServiceError, ServiceMissingError

# As for a process, the output is appended to a file. Some images have programs in these folders.
_FIND = 'PATH=$PATH:/usr/local/bin:/app; exec "$@"'
_RUN = f'{_FIND} >>"$0" 2>&1'


class ServiceContainer(RunningServer):
    """A command in a container of an image that has a shell."""

    def __init__(
        self,
        engine: Engine,
        image: str,
        command: Sequence[str],
        *,
        log_path: Path,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        mounts: Sequence[tuple[Path, str, str]] = (),
        user: str = "",
    ) -> None:
        """Start the container; the environment variable `image` names its image.

        `directory` has the log and the command's other files. `mounts` are more files and
        directories, their paths in the container, and `ro` or `rw`. `user` replaces the user of
        this process.
        """
        self._log_path = log_path
        self._exit_code: int | None = None
        self._is_removed = False
        container = DockerContainer(
            images.image(image, os.environ), docker_client_kw=engine.client_arguments
        )
        container.with_command(list(command)).with_envs(**(environment or {}))
        container.with_volume_mapping(str(directory), str(directory), "rw")
        for path, inside, mode in mounts:
            container.with_volume_mapping(str(path), inside, mode)
        container.with_kwargs(
            entrypoint=["/bin/sh", "-c", _RUN, str(log_path)],
            labels=engine.labels,
            network="host",
            user=user or engine.user,
            working_dir=str(directory),
        )
        self._container = container
        log_path.touch()
        try:
            container.start()
        except (APIError, RequestException) as error:
            container.stop()
            reason = error.explanation if isinstance(error, APIError) else error
            raise ServiceMissingError(
                f"cannot start a container of {container.image}: {reason}. Let the engine pull the"
                f" image, name another one ({image}=…), make it (make containers-here), or use"
                " --services=processes."
            ) from None
        self._pid: int = self._state()["Pid"]
        # An ended container has the id 0, but `kill` takes 0 for the watcher's own group.
        self._watcher = Watcher(self._pid) if self._pid else None

    @property
    def pid(self) -> int:
        return self._pid

    def exit_code(self) -> int | None:
        if self._exit_code is None:
            state = self._state()
            if state["Running"]:
                return None
            self._exit_code = state["ExitCode"]
        return self._exit_code

    def terminate(self, *, deadline_s: float = 30.0) -> int:
        if self.exit_code() is None:
            self._container.get_wrapped_container().stop(timeout=math.ceil(deadline_s))
        return self._remove()

    def kill(self, *, children: bool = False) -> None:
        if self.exit_code() is None:
            # The container may end by itself first.
            with contextlib.suppress(APIError):
                self._container.get_wrapped_container().kill()
            self._container.wait()
        self._remove()

    def run(self, command: Sequence[str]) -> None:
        """Run one more command in the container. Raises ServiceError with its output."""
        done = self._container.exec(["/bin/sh", "-c", _FIND, "sh", *command])
        if done.exit_code != 0:
            raise ServiceError(f"{command[0]} ended with {done.exit_code}: {done.output.decode()}")

    def log_tail(self) -> str:
        return tail(self._log_path)

    def _state(self) -> dict[str, Any]:
        wrapped = self._container.get_wrapped_container()
        wrapped.reload()
        state: dict[str, Any] = wrapped.attrs["State"]
        return state

    def _remove(self) -> int:
        """Remove a container that has ended, once, and return its exit code."""
        code = self.exit_code()
        assert code is not None
        if self._watcher is not None:
            self._watcher.dismiss()
        if not self._is_removed:
            self._is_removed = True
            self._container.stop()
        return code
