"""A manager as a process: its HTTP API, its signals, and its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from rlm.app.manager_process import run_manager
from rlm.config.load import Config, load_config
from rlm.config.values import HostPort
from rlm.metrics.metrics import Metrics
from rlm.rest.api_listener import ApiListener
from rlm.rest.credentials import MetadataAuthority
from rlm.rest.signing import ManagerIdentity
from rlm.status.document import PartitionReport
from rlm.status.explanation import OffsetExplanation
from rlm.status.retention_preview import RetentionPreview
from rsm.segment.errors import InvalidConfigError, TieredStorageError
from tests.services import plain_http
from tests.unit.rlm.cli.stated_managers import Cluster


class FakeManager:
    """A manager that only calls `on_tick`, about twice a second."""

    def __init__(self, on_tick: Callable[[HostPort], TieredStorageError | None]) -> None:
        self._on_tick = on_tick
        self._listener: ApiListener | None = None
        self.calls: list[str] = []

    def build(self, config: Config, listener: ApiListener, metrics: Metrics) -> FakeManager:
        self._listener = listener
        return self

    def start(self) -> None:
        self.calls.append("start")

    def is_hanging(self) -> bool:
        return False

    def sign_off(self) -> None:
        self.calls.append("sign off")

    def stop(self, *, timeout_ms: int) -> None:
        self.calls.append("stop")

    def failure(self) -> TieredStorageError | None:
        assert self._listener is not None
        return self._on_tick(self._listener.listen_at("127.0.0.1"))

    @property
    def authority(self) -> MetadataAuthority:
        identity = ManagerIdentity(cluster_id="c", broker_id=1, incarnation=UUID(int=1))
        return MetadataAuthority(metadata=Cluster().metadata, identity=identity)

    def readiness(self) -> tuple[bool, Sequence[str]]:
        return False, ("no cluster",)

    def warnings(self) -> Sequence[str]:
        return ()

    def partition_reports(self) -> Sequence[PartitionReport]:
        return ()

    def explanation(self, topic: str, partition: int, offset: int) -> OffsetExplanation | None:
        return None

    def retention(self, topic: str) -> Sequence[RetentionPreview]:
        return ()

    def run_cycle(self) -> None: ...

    def delete_streamed(self, topic: str, partition: int) -> bool:
        return False


def _run(directory: Path, manager: FakeManager) -> None:
    path = directory / "rlm.properties"
    path.write_text(
        "bootstrap.servers=localhost:1\nlog.dirs=logs\nstate.dir=state\n"
        "rsm.config.storage.filesystem.root=store\n"
    )
    run_manager(
        lambda: load_config(path), manager.build, probe_fd=None, rest_fd=None, supervised=False
    )


def test_manager_when_terminated_then_stops_cleanly(tmp_path: Path) -> None:
    manager = FakeManager(lambda _: os.kill(os.getpid(), signal.SIGTERM))

    _run(tmp_path, manager)

    assert manager.calls == ["start", "sign off", "stop"]


def test_manager_when_it_can_never_work_then_stops_and_says_why(tmp_path: Path) -> None:
    manager = FakeManager(lambda _: InvalidConfigError("a foreign cluster"))

    with pytest.raises(InvalidConfigError, match="a foreign cluster"):
        _run(tmp_path, manager)

    assert manager.calls == ["start", "stop"]


def test_manager_when_its_address_is_known_then_answers_there(tmp_path: Path) -> None:
    answers: list[httpx.Response] = []

    def ask(address: HostPort) -> None:
        answers.append(plain_http.get(f"http://{address}/readyz"))
        os.kill(os.getpid(), signal.SIGTERM)

    _run(tmp_path, FakeManager(ask))

    assert answers[0].json() == {"ready": False}
