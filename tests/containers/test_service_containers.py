"""Services in containers answer; they are removed, also those of a run that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from types import MappingProxyType

import docker
import httpx
import pytest
from azure.storage.blob import BlobServiceClient

from tests.services.containers.engine import Engine
from tests.services.containers.provider import ContainerProvider, open_container_provider
from tests.services.kafka import admin_client

_NAME = "asked"
_RESPONSE_S = 30.0
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


@contextmanager
def _kafka(provider: ContainerProvider, directory: Path) -> Iterator[set[str]]:
    with provider.kafka(directory) as cluster:
        cluster.create_topic(_NAME)
        admin = admin_client(cluster.bootstrap_servers)
        yield set(admin.list_topics(timeout=_RESPONSE_S).topics)


@contextmanager
def _s3(provider: ContainerProvider, directory: Path) -> Iterator[set[str]]:
    with provider.s3(directory) as server:
        server.create_bucket(_NAME)
        yield {each["Name"] for each in server.client().list_buckets()["Buckets"]}


@contextmanager
def _azure(provider: ContainerProvider, directory: Path) -> Iterator[set[str]]:
    with provider.azure(directory) as server:
        server.create_container(_NAME)
        with BlobServiceClient.from_connection_string(server.connection_string()) as client:
            yield {each.name for each in client.list_containers()}


@contextmanager
def _gcs(provider: ContainerProvider, directory: Path) -> Iterator[set[str]]:
    with provider.gcs(directory) as server:
        server.create_bucket(_NAME)
        answer = httpx.get(f"{server.url}/storage/v1/b", timeout=_RESPONSE_S)
        yield {each["name"] for each in answer.json()["items"]}


@contextmanager
def _hdfs(provider: ContainerProvider, directory: Path) -> Iterator[set[str]]:
    with provider.hdfs(directory) as cluster:
        root = f"{cluster.url}/webhdfs/v1/"
        httpx.put(f"{root}{_NAME}?op=MKDIRS", timeout=_RESPONSE_S).raise_for_status()
        answer = httpx.get(f"{root}?op=LISTSTATUS", timeout=_RESPONSE_S)
        yield {each["pathSuffix"] for each in answer.json()["FileStatuses"]["FileStatus"]}


_SERVICES: Mapping[str, Callable[[ContainerProvider, Path], AbstractContextManager[set[str]]]] = (
    MappingProxyType({"kafka": _kafka, "s3": _s3, "azure": _azure, "gcs": _gcs, "hdfs": _hdfs})
)
"""Each starts a service, creates something named `_NAME` in it, and yields all names in it."""


@pytest.mark.parametrize("kind", _SERVICES)
def test_service_when_it_runs_in_a_container_then_answers_requests(
    engine: Engine, tmp_path: Path, kind: str
) -> None:
    with _SERVICES[kind](ContainerProvider(engine), tmp_path) as names:
        assert _NAME in names
        assert _containers_of(engine, os.getpid()) == 1


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
