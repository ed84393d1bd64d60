"""`rlm run` next to each of three brokers, with one store and one metadata topic."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import KafkaException

from tests.e2e.broker_host import BrokerHost
from tests.services.kafka import KafkaBroker, KafkaCluster, admin_client
from tests.services.ports import free_ports
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_KNOWN_DEADLINE_S = 90.0


class ThreeHosts:
    """The hosts of all brokers of a cluster. Not thread-safe."""

    def __init__(
        self, directory: Path, cluster: KafkaCluster, settings: Mapping[str, str] | None = None
    ) -> None:
        self.cluster = cluster
        self._processes: dict[int, ServiceProcess] = {}
        self._running: dict[int, ExitStack] = {}
        self._hosts = {
            broker.node_id: BrokerHost(
                directory / f"host-{broker.node_id}",
                cluster,
                broker=broker,
                store=directory / "store",
                metadata_topic=f"metadata-{directory.name}",
                settings={
                    "gateway.heartbeat.interval.ms": "500",
                    "rlmm.config.remote.log.metadata.topic.replication.factor": "3",
                    **(settings or {}),
                },
            )
            for broker in cluster.brokers
        }
        self._gateways = self.new_addresses()
        for node_id, host in self._hosts.items():
            host.set(**{"gateway.listener": self._gateways[node_id]})

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all gateways."""
        return ",".join(self._gateways.values())

    @property
    def any_host(self) -> BrokerHost:
        """One of the hosts, for commands."""
        return self._hosts[1]

    @property
    def stopped(self) -> tuple[int, ...]:
        """The node ids whose hosts do not run."""
        return tuple(node_id for node_id in self._hosts if node_id not in self._running)

    def new_addresses(self) -> dict[int, str]:
        """Return free addresses that the gateways can move to, by node id."""
        ports = free_ports(len(self._hosts))
        return {
            node_id: f"127.0.0.1:{port}" for node_id, port in zip(self._hosts, ports, strict=True)
        }

    def move_gateways(self, addresses: dict[int, str]) -> None:
        """Start all hosts again, with their gateways at other addresses."""
        self.stop()
        for node_id, address in addresses.items():
            self._gateways[node_id] = address
            self._hosts[node_id].set(**{"gateway.listener": address})
        self.start()

    def gateway(self, node_id: int) -> str:
        """Return the address of a broker's gateway."""
        return self._gateways[node_id]

    def process(self, node_id: int) -> ServiceProcess:
        """Return a host's running `rlm run`."""
        return self._processes[node_id]

    def start(self, *node_ids: int) -> None:
        """Start hosts, by default the stopped ones; wait until all redirect to each other."""
        names = node_ids or self.stopped
        for node_id in names:
            with ExitStack() as stack:
                self._processes[node_id] = stack.enter_context(self._hosts[node_id].running())
                self._running[node_id] = stack.pop_all()
        for node_id in names:
            self._hosts[node_id].wait_ready()
        for node_id in self._running:
            self.wait_all_led_home(asked=node_id)

    def stop(self, *node_ids: int) -> None:
        """Stop the named hosts, or all that run, cleanly."""
        ending = [self._running.pop(each) for each in node_ids or tuple(self._running)]
        with ThreadPoolExecutor(len(self._hosts)) as pool:
            for _ in pool.map(ExitStack.close, ending):
                pass

    @contextmanager
    def frozen(self, node_id: int) -> Iterator[None]:
        """Freeze a host's processes with SIGSTOP until the block ends."""
        self._processes[node_id].signal_group(signal.SIGSTOP)
        try:
            yield
        finally:
            self._processes[node_id].signal_group(signal.SIGCONT)

    def led_elsewhere(self, node_id: int) -> float:
        """Return how many clients a broker's gateway has sent to another since it started."""
        metric = "rlm_gateway_connections_closed_total"
        return sum(self._hosts[node_id].metrics(metric, reason="led_elsewhere").values())

    def log_tails(self) -> str:
        """Return the end of each host's log, by node id."""
        tails = {node_id: each.log_tail() for node_id, each in self._processes.items()}
        return "\n".join(f"host {node_id}:\n{tail}" for node_id, tail in tails.items())

    def wait_all_led_home(self, *, asked: int) -> None:
        """Wait until the gateway of broker `asked` redirects to each broker's own gateway."""
        self.wait_led_to(self._gateways, asked=asked)

    def wait_led_to(self, expected: dict[int, str], *, asked: int) -> None:
        """Wait until the gateway of broker `asked` redirects clients to these addresses."""
        found: dict[int, str] = {}

        def leads_there() -> bool:
            nonlocal found
            found = self._led_to(asked)
            return found == expected

        wait_until(
            leads_there,
            _KNOWN_DEADLINE_S,
            lambda: f"gateway {asked} leads to {found}, expected {expected}",
            despite=KafkaException,
        )

    def _led_to(self, asked: int) -> dict[int, str]:
        metadata = admin_client(self._gateways[asked]).list_topics(timeout=10.0)
        return {each.id: f"{each.host}:{each.port}" for each in metadata.brokers.values()}


@contextmanager
def three_hosts(
    directory: Path, cluster: KafkaCluster, *, settings: Mapping[str, str] | None = None
) -> Iterator[ThreeHosts]:
    """Run the hosts of all brokers until the block ends, by default with a directory as store."""
    hosts = ThreeHosts(directory, cluster, settings)
    try:
        hosts.start()
        yield hosts
    finally:
        hosts.stop()


def broker_of(cluster: KafkaCluster, node_id: int) -> KafkaBroker:
    """Return a cluster's broker by its node id."""
    (found,) = [each for each in cluster.brokers if each.node_id == node_id]
    return found
