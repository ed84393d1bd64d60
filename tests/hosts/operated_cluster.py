"""Kafka on three hosts and `rlm run` on each, installed as the README instructs a new operator.

The hosts are broker1, broker2 and broker3 to each other; each has one broker, which is a controller
too, at port 9092. Paths are the README's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.hosts import http_client, kafka_client
from tests.hosts.network import HostCommandError, HostNetwork, VirtualHost
from tests.hosts.operator_config import SHORT_TIMES, host_configuration, setting
from tests.services.kafka import KafkaBroker, broker_test_defaults, node_properties
from tests.services.kafka_runtime import new_id
from tests.services.process import ServiceProcess
from tests.services.service import Service
from tests.services.waiting import wait_until

EACH_LEADS_ONE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
# For commands that give the same output on each host, which asks the managers of the other two.
EACH_HOST = pytest.mark.parametrize(
    "number", [pytest.param(1, marks=pytest.mark.long), 2, pytest.param(3, marks=pytest.mark.long)]
)
_KAFKA_PORT = 9092
_CONTROLLER_PORT = 9093
_STORE_KEY = "rsm.config.storage.filesystem.root"
_READY_DEADLINE_S = 120.0
_TIERED_DEADLINE_S = 120.0
_STOP_DEADLINE_S = 25.0  # `rlm run` promises to end within 20 s

T = TypeVar("T")


class OperatedHost:
    """A host with its broker and its `rlm run`. Not thread-safe."""

    def __init__(self, host: VirtualHost, broker: KafkaBroker) -> None:
        self.host = host
        self.broker = broker
        self.log_path = host.directory / "rlm.log"
        self.configuration = host.directory / "rlm.properties"
        self.configure()
        host.outside(self.setting(_STORE_KEY)).mkdir(exist_ok=True)
        self._process: ServiceProcess | None = None

    @property
    def number(self) -> int:
        """The host's number, which is its broker's node id."""
        return self.host.number

    @property
    def is_running(self) -> bool:
        """Whether its `rlm run` is running."""
        return self._process is not None and self._process.exit_code() is None

    def configure(self, settings: Mapping[str, str | None] | None = None) -> None:
        """Write its rlm.properties: the README's, short times, and these; None removes a key.

        `rlm run` reads the file when it starts.
        """
        text = host_configuration(self.host.dns_name, {**SHORT_TIMES, **(settings or {})})
        self.configuration.write_text(text)

    def restart(self, settings: Mapping[str, str | None] | None = None) -> None:
        """Stop `rlm run`, write its rlm.properties as `configure` does, and start it again."""
        self.stop()
        self.configure(settings)
        self.start()

    def setting(self, key: str) -> str:
        """Return the value in its rlm.properties. Raises KeyError if the file sets none."""
        return setting(self.configuration.read_text(), key)

    @property
    def store(self) -> Path:
        """The store's root, which all hosts share, as the machine sees it."""
        return self.host.outside(self.setting(_STORE_KEY))

    @property
    def gateway(self) -> str:
        """The address that an operator gives to clients for this host's gateway."""
        return self.setting("gateway.listener")

    def start(self) -> None:
        """Start `rlm run`; do not wait until it is ready."""
        command = self.host.command(
            sys.executable, "-m", "rlm", "run", "--config", str(self.configuration)
        )
        self._process = ServiceProcess(command, log_path=self.log_path)

    def stop(self) -> None:
        """Stop `rlm run`, and require exit code 0."""
        if self._process is not None and self.is_running:
            code = self._process.terminate(deadline_s=_STOP_DEADLINE_S)
            assert code == 0, f"{self.host.dns_name} exited {code}:\n{self.log_tail()}"

    def kill(self) -> None:
        """End its processes by SIGKILL."""
        if self._process is not None:
            self._process.kill(children=True)

    def wait_ready(self) -> None:
        """Wait until all processes that `rlm run` supervises are ready."""
        url = f"{self.metrics_url}/readyz"
        try:
            self.host.call(
                http_client.wait_status, url=url, status=200, deadline_s=_READY_DEADLINE_S
            )
        except HostCommandError as late:
            raise HostCommandError(f"{late}\n{self.log_tail()}") from None

    def wait_not_ready(self, reason: str = "", *, deadline_s: float = 60.0) -> None:
        """Wait until `/readyz` fails with a reason that contains this text."""
        url = f"{self.metrics_url}/readyz"
        self.host.call(
            http_client.wait_status, url=url, status=503, deadline_s=deadline_s, text=reason
        )

    def unready_after_s(self, reason: str, *, since_s: float, deadline_s: float = 60.0) -> float:
        """Wait until `/readyz` shows a reason; return the last time at which it did not.

        The result is relative to `since_s` of the machine's monotonic clock. Thread-safe.
        """
        return self.host.call(
            http_client.shown_after_s,
            url=f"{self.metrics_url}/readyz",
            text=reason,
            since_s=since_s,
            deadline_s=deadline_s,
        )

    def unready_answers(self, *, until_s: float) -> list[str]:
        """Return the answers of `/readyz` other than ready, up to a monotonic time. Thread-safe."""
        url = f"{self.metrics_url}/readyz"
        return self.host.call(http_client.other_answers, url=url, status=200, until_s=until_s)

    def wait_status(self, topic: str, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until `wanted` holds for a partition's row of `rlm status`, run on this host."""
        self.wait_statuses(topic, lambda rows: any(map(wanted, rows)))

    def wait_statuses(self, topic: str, wanted: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Wait until `wanted` holds for the partitions' rows of `rlm status`, run on this host."""
        rows: list[dict[str, Any]] = []

        def holds() -> bool:
            # The exit code is 1 while a manager does not answer, but the rows are printed.
            shown = self.try_rlm("status", topic, "--json").stdout
            rows[:] = json.loads(shown)["partitions"] if shown else []
            return wanted(rows)

        wait_until(holds, _TIERED_DEADLINE_S, lambda: f"rlm status: {rows}", interval_s=0.5)

    def readiness(self) -> tuple[int, list[str]]:
        """Return status and reasons of `/readyz`; status 0 while nothing answers."""
        status, body = self.host.call(http_client.get, url=f"{self.metrics_url}/readyz")
        return status, json.loads(body)["reasons"] if status else []

    @property
    def metrics_url(self) -> str:
        """The URL of `/metrics` in the README's configuration, for programs on this host."""
        return f"http://{self.setting('metrics.listener')}"

    def metrics(self) -> str:
        """Return the answer of `/metrics`."""
        status, body = self.host.call(http_client.get, url=f"{self.metrics_url}/metrics")
        assert status == 200, body
        return body

    def try_rlm(
        self, *arguments: str, deadline_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on this host; return its result even if it fails."""
        program = (sys.executable, "-m", "rlm")
        config = ("--config", str(self.configuration))
        return self.host.run(*program, *arguments, *config, deadline_s=deadline_s)

    def rlm(self, *arguments: str, deadline_s: float = 60.0) -> str:
        """Return a command's standard output. Raises HostCommandError if the command fails."""
        done = self.try_rlm(*arguments, deadline_s=deadline_s)
        if done.returncode != 0:
            raise HostCommandError(
                f"rlm {' '.join(arguments)} on {self.host.dns_name} exited {done.returncode}:\n"
                f"{done.stdout}{done.stderr}"
            )
        return done.stdout

    def log_tail(self) -> str:
        """Return the end of the log of `rlm run`."""
        return "" if self._process is None else self._process.log_tail()


class OperatedCluster(Service):
    """Three hosts, all running. Not thread-safe.

    `properties` are added to each broker's. Tests leave all hosts connected and running.
    """

    def __init__(self, directory: Path, *, properties: Mapping[str, str] | None = None) -> None:
        self.network = HostNetwork(directory, hosts=3)
        self._properties = {**broker_test_defaults(3), **(properties or {})}
        self.cluster_id = new_id()
        self.hosts: tuple[OperatedHost, ...] = ()

    def start(self) -> None:
        try:
            self.network.start()
            self.hosts = tuple(
                OperatedHost(each, self._broker(each)) for each in self.network.hosts
            )
            for host in self.hosts:
                host.broker.start()
            self.wait_brokers()
            for host in self.hosts:
                host.start()
            for host in self.hosts:
                host.wait_ready()
        except BaseException:
            self._kill()
            raise

    def stop(self) -> None:
        try:
            with ThreadPoolExecutor(len(self.hosts)) as pool:
                for _ in pool.map(OperatedHost.stop, self.hosts):
                    pass
        finally:
            self._kill()

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' own addresses."""
        return ",".join(f"{host.host.dns_name}:{_KAFKA_PORT}" for host in self.hosts)

    def wait_brokers(self) -> None:
        """Wait until every broker lists all brokers."""
        count = len(self.hosts)
        self.ask(kafka_client.wait_brokers, count=count, deadline_s=_READY_DEADLINE_S)

    def create_topic(self, topic: str, replicas: list[list[int]] | None = None) -> None:
        """Create a topic, by default with three partitions; broker N + 1 leads partition N."""
        self.ask(kafka_client.create_topic, topic=topic, replicas=replicas or EACH_LEADS_ONE)

    def produce(self, topic: str, *, segments: int, partitions: int = 3) -> dict[str, Any]:
        """Write segments to each partition, not through gateways; return digests by partition."""
        return self.ask(kafka_client.produce, topic=topic, partitions=partitions, segments=segments)

    def read(self, topic: str, *, via: OperatedHost, on: OperatedHost) -> dict[str, Any]:
        """Read a whole topic through a gateway; return the digests by partition."""
        return on.host.call(kafka_client.read, bootstrap=via.gateway, topic=topic)

    def wait_trimmed(self, topic: str) -> None:
        """Wait until the brokers have only the newest rolled and the active segments."""
        leaders = self.ask(kafka_client.leaders, topic=topic)
        self.ask(
            kafka_client.wait_local_starts,
            topic=topic,
            wanted={
                number: self.base_offsets(topic, int(number), node_id=leader)[-2]
                for number, leader in leaders.items()
            },
            deadline_s=_TIERED_DEADLINE_S,
        )

    def base_offsets(self, topic: str, partition: int, *, node_id: int) -> list[int]:
        """Return the base offsets of a broker's segment files, ascending; the last is active."""
        (log_dir,) = self.hosts[node_id - 1].broker.log_dirs
        return sorted(int(path.stem) for path in log_dir.glob(f"{topic}-{partition}/*.log"))

    def ask(self, function: Callable[..., T], **arguments: Any) -> T:
        """Call a function on the first host, with the brokers' own addresses as `bootstrap`."""
        return self.hosts[0].host.call(function, bootstrap=self.bootstrap_servers, **arguments)

    @contextmanager
    def cut_off(self, host: OperatedHost) -> Iterator[None]:
        """Take a host's link down until the block ends."""
        with self.network.without(host.host):
            yield

    def log_tails(self) -> str:
        """Return the end of the log of each host's `rlm run`."""
        return "\n".join(f"{host.host.dns_name}:\n{host.log_tail()}" for host in self.hosts)

    def _broker(self, host: VirtualHost) -> KafkaBroker:
        seen = Path(setting(host_configuration(host.dns_name, {}), "log.dirs"))
        directory = host.directory / "kafka"
        directory.mkdir(parents=True, exist_ok=True)
        voters = {each.number: f"{each.dns_name}:{_CONTROLLER_PORT}" for each in self.network.hosts}
        own = node_properties(
            host.number, f"{host.dns_name}:{_KAFKA_PORT}", voters=voters, log_dirs=(seen,)
        )
        return KafkaBroker(
            directory,
            node_id=host.number,
            cluster_id=self.cluster_id,
            port=_KAFKA_PORT,
            log_dirs=(host.outside(str(seen)),),
            properties={**own, **self._properties},
            host=host.dns_name,
            launcher=tuple(host.command()),
        )

    def _kill(self) -> None:
        for host in self.hosts:
            host.kill()
            host.broker.kill()
        self.network.stop()
