"""Containers of services are removed, also those of a run that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import docker
import pytest

from tests.services.containers.engine import Engine
from tests.services.containers.provider import ContainerProvider, open_container_provider

pytestmark = pytest.mark.timeout(1800)
_CHECKOUT = Path(__file__).parents[2]
_STARTER = (
    "import pathlib, signal, sys\n"
    "from tests.services.containers.provider import open_container_provider\n"
    "open_container_provider().s3(pathlib.Path(sys.argv[1])).start()\n"
    "print('started', flush=True); signal.pause()"
)


@pytest.fixture
def killed_starter(tmp_path: Path) -> int:
    """The id of a process that started a container and was killed."""
    command = [sys.executable, "-c", _STARTER, str(tmp_path / "of-a-killed-run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_CHECKOUT) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "started\n"
        os.kill(starter.pid, signal.SIGKILL)
    return starter.pid


def _containers_of(engine: Engine, pid: int) -> int:
    (label,) = engine.labels
    with closing(docker.from_env(**engine.client_arguments)) as client:
        return len(client.containers.list(all=True, filters={"label": f"{label}={pid}"}))


def test_container_when_its_block_ends_then_is_removed(engine: Engine, tmp_path: Path) -> None:
    with ContainerProvider(engine).s3(tmp_path):
        assert _containers_of(engine, os.getpid()) == 1

    assert _containers_of(engine, os.getpid()) == 0


def test_containers_when_a_killed_run_left_one_then_the_next_run_removes_only_that(
    engine: Engine, killed_starter: int, tmp_path: Path
) -> None:
    with ContainerProvider(engine).s3(tmp_path / "of-this-run"):
        assert _containers_of(engine, killed_starter) == 1

        open_container_provider()

        assert _containers_of(engine, killed_starter) == 0
        assert _containers_of(engine, os.getpid()) == 1
