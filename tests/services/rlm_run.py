"""`rlm run` next to a broker of a KafkaCluster, as a user starts it, with a directory as the store.

Its directory has `rlm.properties`, `rlm.log`, `store/` and `state/`. They outlive a stop or a kill,
so that a restart continues where `rlm run` was.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import httpx

from tests.services import plain_http
from tests.services.kafka import KafkaBroker, KafkaCluster
from tests.services.manager_reports import manager_reports
from tests.services.ports import free_ports
from tests.services.process import ServiceProcess
from tests.services.service import ServiceError
from tests.services.waiting import wait_until

RLM = str(Path(sys.executable).with_name("rlm"))
_READY_DEADLINE_S = 120.0
_STOP_DEADLINE_S = 25.0  # `rlm run` promises to end within 20 s


class RlmFailedError(ServiceError):
    """`rlm run` ended, or was not ready in time; the message holds the end of its log."""


class RlmRun:
    """One `rlm run`. Not thread-safe.

    `settings` replace the defaults of tests: short intervals, few partitions of the metadata topic,
    no minimum age for trims. Without `gateway`, no gateway starts, and its address is empty.
    """

    def __init__(
        self,
        directory: Path,
        cluster: KafkaCluster,
        *,
        broker: KafkaBroker | None = None,
        settings: Mapping[str, str] | None = None,
        gateway: bool = False,
    ) -> None:
        self.configuration = directory / "rlm.properties"
        self.log_path = directory / "rlm.log"
        self.store = directory / "store"
        metrics_port, gateway_port = free_ports(2)
        self.gateway_address = f"127.0.0.1:{gateway_port}" if gateway else ""
        self.metrics_url = f"http://127.0.0.1:{metrics_port}"
        self._process: ServiceProcess | None = None
        self.store.mkdir(parents=True, exist_ok=True)
        properties = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "log.dirs": ",".join(map(str, (broker or cluster.broker).log_dirs)),
            "state.dir": str(directory / "state"),
            "rsm.config.storage.backend": "filesystem",
            "rsm.config.storage.filesystem.root": str(self.store),
            "rlmm.config.remote.log.metadata.topic.num.partitions": "4",
            "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
            "gateway.listener": self.gateway_address,
            "metrics.listener": f"127.0.0.1:{metrics_port}",
            "remote.log.manager.task.interval.ms": "500",
            "remote.log.manager.copier.thread.pool.size": "2",
            "remote.local.trim.min.age.ms": "0",
            **(settings or {}),
        }
        self.configuration.write_text(
            "".join(f"{key}={value}\n" for key, value in properties.items())
        )

    @property
    def pid(self) -> int:
        """Process id of the supervisor."""
        return self._running().pid

    def start(self) -> None:
        """Start `rlm run`; wait until all its processes are ready. Raises RlmFailedError."""
        command = [RLM, "run", "--config", str(self.configuration)]
        self._process = ServiceProcess(command, log_path=self.log_path)
        try:
            wait_until(self._is_ready, _READY_DEADLINE_S, "`rlm run` is ready", interval_s=0.2)
        except AssertionError as late:
            raise RlmFailedError(f"{late}\n{self.log_tail()}") from None

    def stop(self) -> int:
        """Stop it by SIGTERM, past the deadline by SIGKILL; return the exit code, 0 if not run."""
        return 0 if self._process is None else self._process.terminate(deadline_s=_STOP_DEADLINE_S)

    def kill(self) -> None:
        """Kill the supervisor by SIGKILL; its children end by themselves."""
        self._running().kill()

    def require_running(self) -> None:
        """Raise RlmFailedError if it has ended."""
        code = self._running().exit_code()
        if code is not None:
            raise RlmFailedError(f"`rlm run` ended with {code}\n{self.log_tail()}")

    def log_tail(self) -> str:
        """Return the end of its log."""
        return f"the end of {self.log_path}:\n{self._running().log_tail()}"

    def remote_segments(self, topic: str) -> dict[int, int]:
        """Return the number of finished segments by partition; empty if the manager is silent."""
        reports = manager_reports(self.configuration, topic)
        return {each["partition"]: each["remote_segments"] for each in reports}

    def stored_end_offsets(self, topic: str) -> dict[int, int]:
        """Return the end of what is stored, by partition; empty if the manager is silent."""
        reports = manager_reports(self.configuration, topic)
        return {each["partition"]: each["stored_end_offset"] or 0 for each in reports}

    def _is_ready(self) -> bool:
        self.require_running()
        try:
            answer = plain_http.get(f"{self.metrics_url}/readyz")
        except httpx.HTTPError:
            return False
        return answer.status_code == 200

    def _running(self) -> ServiceProcess:
        if self._process is None:
            raise RuntimeError("`rlm run` was not started")
        return self._process
