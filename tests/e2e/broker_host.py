"""A broker's host with a configuration, a store and a state directory for `rlm`.

Each host has its own metadata topic, so that hosts of one broker do not affect each other.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from rlm.config.load import Config, load_config
from rlm.worker.cluster_access import open_metadata_topic
from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.spi import RemoteLogMetadataManager
from rsm.system_clock import SystemClock
from tests.services import plain_http
from tests.services.kafka import KafkaBroker, KafkaCluster
from tests.services.manager_reports import manager_reports
from tests.services.ports import free_ports
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_CHECKOUT = Path(__file__).resolve().parents[2]
_READY_DEADLINE_S = 120.0


class BrokerHost:
    """The host of one of a cluster's brokers, the first by default.

    `settings` replace the defaults of tests. Hosts of one cluster can share `store`; by default it
    is a directory of the host.
    """

    def __init__(
        self,
        directory: Path,
        cluster: KafkaCluster,
        *,
        metadata_topic: str,
        settings: Mapping[str, str] | None = None,
        broker: KafkaBroker | None = None,
        store: Path | None = None,
    ) -> None:
        self.cluster = cluster
        self.store = store or directory / "store"
        self.state_dir = directory / "state"
        self.log_path = directory / "rlm.log"
        self.config_path = directory / "rlm.properties"
        (self._metrics_port,) = free_ports(1)
        directory.mkdir(parents=True, exist_ok=True)
        self.store.mkdir(parents=True, exist_ok=store is not None)
        self._settings = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "log.dirs": ",".join(map(str, (broker or cluster.broker).log_dirs)),
            "gateway.listener": "",
            "metrics.listener": f"127.0.0.1:{self._metrics_port}",
            "process.heartbeat.interval.ms": "500",
            "process.restart.backoff.ms": "50",
            "remote.local.trim.min.age.ms": "0",
            "remote.log.manager.task.interval.ms": "200",
            "rlmm.config.remote.log.metadata.topic.name": metadata_topic,
            "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
            "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
            "rsm.config.storage.filesystem.root": str(self.store),
            "state.dir": str(self.state_dir),
        }
        self.set(**(settings or {}))

    @property
    def metrics_url(self) -> str:
        """Where the supervisor serves metrics."""
        return f"http://127.0.0.1:{self._metrics_port}/metrics"

    @property
    def config(self) -> Config:
        """The configuration as it is in the file."""
        return load_config(self.config_path)

    def set(self, **settings: str) -> None:
        """Change settings; processes see them when they start."""
        self._settings.update(settings)
        lines = (f"{key}={value}" for key, value in self._settings.items())
        self.config_path.write_text("\n".join(lines) + "\n")

    @contextmanager
    def running(self) -> Iterator[ServiceProcess]:
        """Start `rlm run`; stop it at the end of the block, and require exit code 0."""
        with self.started("-m", "rlm", "run", "--config", str(self.config_path)) as process:
            yield process
            assert process.terminate(deadline_s=20.0) == 0, process.log_tail()

    @contextmanager
    def started(self, *arguments: str) -> Iterator[ServiceProcess]:
        """Start a Python process with these arguments; the end of the block stops it."""
        process = ServiceProcess(
            [sys.executable, *arguments], log_path=self.log_path, directory=_CHECKOUT
        )
        try:
            yield process
        finally:
            process.kill(children=True)

    def rlm(self, *arguments: str) -> str:
        """Return a command's standard output. Raises AssertionError if the command fails."""
        done = self.try_rlm(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def try_rlm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command; return its result even if it fails."""
        command = [sys.executable, "-m", "rlm", *arguments, "--config", str(self.config_path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=False)

    def readiness(self) -> tuple[int, list[str]]:
        """Return the code and the reasons of the supervisor's /readyz; code 0 without an answer."""
        try:
            answer = plain_http.get(f"http://127.0.0.1:{self._metrics_port}/readyz")
        except httpx.TransportError:
            return 0, []
        body: dict[str, Any] = answer.json()
        return answer.status_code, body["reasons"]

    def metrics(self, name: str, **labels: str) -> dict[str, float]:
        """Return a metric with these labels, of each process, as the supervisor shows it."""
        answer = plain_http.get(self.metrics_url)
        return {
            sample.labels["process"]: sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        }

    def report(self, topic: str) -> dict[str, Any]:
        """Return the manager's report of partition 0; empty without one."""
        reports = manager_reports(self.config_path, topic)
        return next((each for each in reports if each["partition"] == 0), {})

    def wait_ready(self) -> None:
        """Wait until all processes that `rlm run` supervises are ready."""
        wait_until(
            lambda: self.readiness()[0] == 200,
            _READY_DEADLINE_S,
            lambda: f"ready: {self.readiness()}",
        )

    @contextmanager
    def metadata(self) -> Iterator[RemoteLogMetadataManager]:
        """Follow the metadata topic from its end on; create the topic if it does not exist."""
        config = self.config
        topic = open_metadata_topic(config.cluster, config.metadata)
        manager = TopicBasedRemoteLogMetadataManager(
            topic, MetadataCache(MemoryStore()), SystemClock()
        )
        try:
            manager.start()
            readiness = manager.wait_ready(30_000)
            assert readiness.is_ready, readiness.reason
            yield manager
        finally:
            manager.close()
