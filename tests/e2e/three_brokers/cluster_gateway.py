"""Runs `rlm gateway` for a whole cluster, as a user starts it on a separate host."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.e2e.broker_host import BrokerHost
from tests.e2e.three_brokers.three_hosts import ThreeHosts
from tests.services import plain_http
from tests.services.kafka import admin_client
from tests.services.ports import free_port_range, free_ports
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_CHECKOUT = Path(__file__).resolve().parents[3]
_READY_DEADLINE_S = 120.0


class ClusterGateway:
    """The process and its addresses; clients know only `bootstrap_servers`."""

    def __init__(
        self,
        directory: Path,
        hosts: ThreeHosts,
        *,
        metadata_topic: str | None = None,
        further: Mapping[str, str] | None = None,
    ) -> None:
        """`metadata_topic` replaces the hosts' topic. `further` settings are added."""
        node_ids = [broker.node_id for broker in hosts.cluster.brokers]
        first_port = free_port_range(2 + max(node_ids))
        (rest_port,) = free_ports(1)
        self.bootstrap_servers = f"127.0.0.1:{first_port}"
        self.endpoints = {node_id: f"127.0.0.1:{first_port + 1 + node_id}" for node_id in node_ids}
        self.config_path = directory / "gateway.properties"
        self.log_path = directory / "gateway.log"
        self._rest_url = f"http://127.0.0.1:{rest_port}"
        settings = {
            **_shared(hosts.any_host),
            "gateway.listener": self.bootstrap_servers,
            "rest.listener": f"127.0.0.1:{rest_port}",
            "state.dir": str(directory / "state"),
            **(further or {}),
        }
        if metadata_topic is not None:
            settings["rlmm.config.remote.log.metadata.topic.name"] = metadata_topic
        lines = (f"{key}={value}" for key, value in settings.items())
        self.config_path.write_text("\n".join(lines))

    @contextmanager
    def started(self) -> Iterator[ServiceProcess]:
        """Start the process; the end of the block stops it."""
        command = [sys.executable, "-m", "rlm", "gateway", "--config", str(self.config_path)]
        process = ServiceProcess(command, log_path=self.log_path, directory=_CHECKOUT)
        try:
            yield process
        finally:
            process.kill(children=True)

    @contextmanager
    def running(self) -> Iterator[ServiceProcess]:
        """Start the process, and wait until it is ready; require a clean stop after the block."""
        with self.started() as process:
            wait_until(lambda: self._readiness()[0] == 200, _READY_DEADLINE_S, process.log_tail)
            yield process
            assert process.terminate(deadline_s=20.0) == 0, process.log_tail()

    def unready_because(self) -> str:
        """Return the reasons of its /readyz."""
        return self._readiness()[1]

    def metric(self, name: str) -> float:
        """Return the value of a metric without labels."""
        text = plain_http.get(f"{self._rest_url}/metrics").text
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[1])

    def led_to(self, asked: str) -> dict[int, str]:
        """Return the brokers' addresses that a client of the endpoint `asked` receives."""
        metadata = admin_client(asked).list_topics(timeout=10.0)
        return {each.id: f"{each.host}:{each.port}" for each in metadata.brokers.values()}

    def _readiness(self) -> tuple[int, str]:
        """Return status and body; status 0 while nothing answers."""
        try:
            answer = plain_http.get(f"{self._rest_url}/readyz")
        except httpx.TransportError:
            return 0, ""
        return answer.status_code, answer.text


def _shared(host: BrokerHost) -> dict[str, str]:
    """Return the settings that such a gateway shares with the brokers' hosts."""
    config = host.config
    return {
        "bootstrap.servers": config.cluster.bootstrap_text,
        "rlmm.config.remote.log.metadata.topic.name": config.metadata.topic_name,
        "rlmm.config.remote.log.metadata.topic.num.partitions": str(config.metadata.num_partitions),
        "rlmm.config.remote.log.metadata.topic.replication.factor": str(
            config.metadata.replication_factor
        ),
        "rsm.config.storage.filesystem.root": str(host.store),
    }
