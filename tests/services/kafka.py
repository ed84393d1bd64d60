"""Apache Kafka for tests, demo and benchmarks: real brokers, one or several.

A cluster has one directory: `node-<id>/log-<n>` are a broker's log dirs; next to them are its
output, `broker.log`, and its configuration, `server.properties`. Ports and directories outlive a
stop or a kill, so a restart continues where the broker was. Brokers are in KRaft mode, or share a
ZooKeeper in the directory `zookeeper` if their version needs one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.services.kafka_runtime import (
    USUAL,
    KafkaRelease,
    format_log_dir,
    java_command,
    new_id,
    run_tool,
)
from tests.services.ports import free_ports
from tests.services.process import ServiceProcess
from tests.services.running_server import RunningServer
from tests.services.service import Service, ServiceError
from tests.services.waiting import wait_until
from tests.services.zookeeper import ZooKeeper

_READY_DEADLINE_S = 120.0
_MAX_CONTROLLERS = 3


class BrokerFailedError(ServiceError):
    """A broker ended, or was not ready in time; the message holds the end of its log."""


class KafkaBroker:
    """One node of a cluster, created by KafkaCluster. Not thread-safe.

    `properties` may be changed between a stop and the next start.
    """

    def __init__(
        self,
        directory: Path,
        *,
        node_id: int,
        cluster_id: str,
        port: int,
        log_dirs: tuple[Path, ...],
        properties: Mapping[str, str],
        jvm_flags: tuple[str, ...] = (),
        host: str = "127.0.0.1",
        launcher: tuple[str, ...] = (),
        release: KafkaRelease = USUAL,
    ) -> None:
        """`launcher` is a command that runs the broker's command, such as on another host."""
        self.directory = directory
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.host = host
        self.port = port
        self.log_dirs = log_dirs
        self.properties = dict(properties)
        self._jvm_flags = jvm_flags
        self._launcher = launcher
        self._release = release
        self._process: RunningServer | None = None

    @property
    def address(self) -> str:
        """host:port of the PLAINTEXT listener."""
        return f"{self.host}:{self.port}"

    @property
    def configuration(self) -> Path:
        """The configuration file, which each start writes."""
        return self.directory / "server.properties"

    @property
    def log_path(self) -> Path:
        """The file of the broker's output."""
        return self.directory / "broker.log"

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether the process is running; it may not be ready yet."""
        return self._process is not None and self._process.exit_code() is None

    def start(self) -> None:
        """Start the process; do not wait until it is ready."""
        if self.is_running:
            raise RuntimeError(f"broker {self.node_id} is running already")
        lines = (f"{key}={value}" for key, value in sorted(self.properties.items()))
        self.configuration.write_text("\n".join(lines) + "\n")
        self._process = self._launch()

    def wait_ready(self, *, brokers: int, deadline_s: float = _READY_DEADLINE_S) -> None:
        """Wait until this broker's own answer to Metadata lists that many brokers."""
        process = self._running()
        admin = admin_client(self.address)

        def lists_all() -> bool:
            if process.exit_code() is not None:
                raise BrokerFailedError(self._failure(f"ended with {process.exit_code()}"))
            return len(admin.list_topics(timeout=1.0).brokers) >= brokers

        what = f"broker {self.node_id} lists {brokers} brokers"
        try:
            wait_until(lists_all, deadline_s, what, despite=KafkaException)
        except AssertionError as late:
            raise BrokerFailedError(self._failure(str(late))) from None

    def stop(self, *, deadline_s: float = 60.0) -> None:
        """Stop the broker by SIGTERM (a controlled shutdown); past the deadline by SIGKILL."""
        if self._process is not None:
            self._process.terminate(deadline_s=deadline_s)

    def kill(self) -> None:
        """Kill the broker by SIGKILL."""
        if self._process is not None:
            self._process.kill()

    def log_tail(self) -> str:
        """Return the end of the broker's output."""
        return self._running().log_tail()

    def _launch(self) -> RunningServer:
        """Start the broker without waiting for it: a process, unless a subclass does otherwise."""
        release = self._release
        for log_dir in () if release.needs_zookeeper else self.log_dirs:
            format_log_dir(
                log_dir, cluster_id=self.cluster_id, node_id=self.node_id, release=release
            )
        java = java_command(
            "kafka.Kafka", str(self.configuration), flags=self._jvm_flags, release=release
        )
        return ServiceProcess(
            [*self._launcher, *java], log_path=self.log_path, directory=self.directory
        )

    def _running(self) -> RunningServer:
        if self._process is None:
            raise RuntimeError(f"broker {self.node_id} was not started")
        return self._process

    def _failure(self, what: str) -> str:
        return f"broker {self.node_id}: {what}; the end of its log:\n{self.log_tail()}"


class KafkaCluster(Service):
    """Brokers that know each other; the first three are controllers too. Not thread-safe.

    `properties` go to every broker and win over the defaults for tests, which are few threads,
    short checks and delays of retention, and internal topics of one partition. `new_broker` makes
    a node: a process, unless a provider gives another class. Brokers with a ZooKeeper choose
    another `cluster_id` themselves.
    """

    def __init__(
        self,
        directory: Path,
        *,
        brokers: int = 1,
        log_dirs_per_broker: int = 1,
        properties: Mapping[str, str] | None = None,
        jvm_flags: tuple[str, ...] = (),
        new_broker: Callable[..., KafkaBroker] = KafkaBroker,
        release: KafkaRelease = USUAL,
    ) -> None:
        self.directory = directory
        self.cluster_id = new_id()
        self.release = release
        self.zookeeper = (
            ZooKeeper(directory / "zookeeper", release) if release.needs_zookeeper else None
        )
        node_ids = range(1, brokers + 1)
        ports = free_ports(2 * brokers)
        voters = {
            node_id: f"127.0.0.1:{ports[brokers + node_id - 1]}"
            for node_id in node_ids[:_MAX_CONTROLLERS]
        }
        coordination = (
            partial(node_properties, voters=voters)
            if self.zookeeper is None
            else partial(zookeeper_node_properties, zookeeper=self.zookeeper.address)
        )
        self.brokers = tuple(
            _new_broker(
                partial(new_broker, release=release),
                directory / f"node-{node_id}",
                node_id=node_id,
                cluster_id=self.cluster_id,
                port=ports[node_id - 1],
                own_properties=coordination,
                log_dir_count=log_dirs_per_broker,
                properties={**broker_test_defaults(brokers), **(properties or {})},
                jvm_flags=jvm_flags,
            )
            for node_id in node_ids
        )

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, as clients take them."""
        return ",".join(broker.address for broker in self.brokers)

    @property
    def broker(self) -> KafkaBroker:
        """The first broker, the only one in a cluster of one."""
        return self.brokers[0]

    def start(self) -> None:
        """Start all brokers and wait until each lists all. Raises BrokerFailedError."""
        try:
            if self.zookeeper is not None:
                self.zookeeper.start()
            for broker in self.brokers:
                broker.start()
            for broker in self.brokers:
                broker.wait_ready(brokers=len(self.brokers))
        except BaseException:
            self.kill()
            raise

    def restart(self, broker: KafkaBroker) -> None:
        """Start a broker that was stopped or killed, and wait until it lists all running ones."""
        if broker.is_running:
            broker.stop()
        broker.start()
        broker.wait_ready(brokers=sum(each.is_running for each in self.brokers))

    @contextmanager
    def without(self, broker: KafkaBroker, *, killed: bool = False) -> Iterator[None]:
        """Stop or kill a broker until the block ends; then it leads as before."""
        if killed:
            broker.kill()
        else:
            broker.stop()
        try:
            yield
        finally:
            self.restart(broker)
            self.restore_leaders()

    def restore_leaders(self) -> None:
        """Make the first replica of every partition lead; wait until each broker knows that."""
        admin = admin_client(self.bootstrap_servers)

        def elected() -> bool:
            admin.elect_leaders(ElectionType.PREFERRED).result(30.0)
            running = (each for each in self.brokers if each.is_running)
            return all(_first_replicas_lead(each) for each in running)

        wait_until(
            elected,
            90.0,
            "the first replica of every partition leads",
            interval_s=0.2,
            despite=KafkaException,
        )

    def stop(self) -> None:
        """Stop all brokers; several by SIGKILL, as a controller quorum cannot stop in order."""
        if len(self.brokers) > 1:
            self.kill()
        else:
            self.broker.stop()
            self._stop_zookeeper()

    def kill(self) -> None:
        """Kill all brokers by SIGKILL, and stop their ZooKeeper."""
        for broker in self.brokers:
            broker.kill()
        self._stop_zookeeper()

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        replicas: Sequence[int] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic and wait until every running broker knows leaders for its partitions.

        With `replicas`, each partition is at these brokers, and the first one leads.
        """
        topic = NewTopic(name, partitions, replication_factor, config=dict(config or {}))
        if replicas is not None:
            assigned = [list(replicas)] * partitions
            topic = NewTopic(name, partitions, replica_assignment=assigned, config=topic.config)
        admin = admin_client(
            self.bootstrap_servers
        )  # keeps the client alive until its requests have ended
        admin.create_topics([topic])[name].result(30.0)
        self._wait_for_leaders(name, partitions)

    def add_partitions(self, name: str, partitions: int) -> None:
        """Raise a topic's partitions to a number; wait until all running brokers know leaders."""
        admin = admin_client(self.bootstrap_servers)
        admin.create_partitions([NewPartitions(name, partitions)])[name].result(30.0)
        self._wait_for_leaders(name, partitions)

    def _stop_zookeeper(self) -> None:
        if self.zookeeper is not None:
            self.zookeeper.stop()

    def _wait_for_leaders(self, name: str, partitions: int) -> None:
        for broker in self.brokers:
            if broker.is_running:
                _wait_for_leaders(broker, name, partitions)


def set_topic_configs(admin: AdminClient, topic: str, configs: Mapping[str, str]) -> None:
    """Set settings of a topic. Raises KafkaException if the broker refuses them."""
    changes = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    admin.incremental_alter_configs([resource])[resource].result(30.0)


def admin_client(bootstrap_servers: str) -> AdminClient:
    """Return an admin client that does not log brokers that are down."""
    return AdminClient(
        {"bootstrap.servers": bootstrap_servers, "log_level": 0, "socket.timeout.ms": 10_000}
    )


def dump_log_segments(path: Path, *, deep: bool = True) -> str:
    """Return the output of Kafka's DumpLogSegments for a file, whose name shows its kind.

    With `deep`, the tool opens record batches, too. Raises RuntimeError if the tool fails. Errors
    in a readable file are in the output (`isvalid: false`, mismatches of indexes).
    """
    options = ("--deep-iteration",) if deep else ()
    return run_tool(
        "org.apache.kafka.tools.DumpLogSegments", *options, "--files", str(path), deadline_s=120.0
    )


def _wait_for_leaders(broker: KafkaBroker, topic: str, partitions: int) -> None:
    admin = admin_client(broker.address)

    def has_leaders() -> bool:
        found = admin.list_topics(topic, timeout=10.0).topics[topic].partitions.values()
        return len(found) == partitions and all(each.leader > 0 for each in found)

    what = f"leaders of {topic} on broker {broker.node_id}"
    wait_until(has_leaders, 60.0, what, despite=KafkaException)


def _first_replicas_lead(broker: KafkaBroker) -> bool:
    topics = admin_client(broker.address).list_topics(timeout=10.0).topics.values()
    return all(
        partition.leader == partition.replicas[0]
        for topic in topics
        for partition in topic.partitions.values()
    )


def _new_broker(
    new_broker: Callable[..., KafkaBroker],
    directory: Path,
    *,
    node_id: int,
    cluster_id: str,
    port: int,
    own_properties: Callable[..., Mapping[str, str]],
    log_dir_count: int,
    properties: Mapping[str, str],
    jvm_flags: tuple[str, ...],
) -> KafkaBroker:
    log_dirs = tuple(directory / f"log-{number}" for number in range(log_dir_count))
    directory.mkdir(parents=True, exist_ok=True)
    own = own_properties(node_id, f"127.0.0.1:{port}", log_dirs=log_dirs)
    return new_broker(
        directory,
        node_id=node_id,
        cluster_id=cluster_id,
        port=port,
        log_dirs=log_dirs,
        properties={**own, **properties},
        jvm_flags=jvm_flags,
    )


def node_properties(
    node_id: int, listener: str, *, voters: Mapping[int, str], log_dirs: Iterable[Path]
) -> dict[str, str]:
    """Return settings of a node that listens on host:port; `voters` has controllers' addresses."""
    listeners = f"PLAINTEXT://{listener}"
    is_controller = node_id in voters
    return {
        "process.roles": "broker,controller" if is_controller else "broker",
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{i}@{address}" for i, address in voters.items()),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": listeners,
        "listeners": f"{listeners},CONTROLLER://{voters[node_id]}" if is_controller else listeners,
        "log.dirs": ",".join(map(str, log_dirs)),
    }


def zookeeper_node_properties(
    node_id: int, listener: str, *, zookeeper: str, log_dirs: Iterable[Path]
) -> dict[str, str]:
    """Return settings of a broker that listens on host:port, in a cluster with this ZooKeeper."""
    return {
        "broker.id": str(node_id),
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": "6000",
        "advertised.listeners": f"PLAINTEXT://{listener}",
        "listeners": f"PLAINTEXT://{listener}",
        "log.dirs": ",".join(map(str, log_dirs)),
    }


def broker_test_defaults(brokers: int) -> dict[str, str]:
    """Return settings: few threads, short delays, internal topics of one partition."""
    replicas = str(min(brokers, 3))
    return {
        "auto.create.topics.enable": "false",
        "broker.heartbeat.interval.ms": "500",
        # A killed broker can register again only when its old session is over.
        "broker.session.timeout.ms": "6000",
        # Long enough that controllers on a busy machine do not elect another one at once.
        "controller.quorum.fetch.timeout.ms": "6000",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.backoff.ms": "500",
        "log.flush.offset.checkpoint.interval.ms": "1000",
        "log.initial.task.delay.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.segment.delete.delay.ms": "500",
        # An idle controller writes a record this often, and every broker reads it.
        "metadata.max.idle.interval.ms": "5000",
        "num.io.threads": "4",
        "num.network.threads": "2",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": replicas,
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": replicas,
    }
