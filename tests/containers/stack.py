"""The compose stack as its users run it, by deploy/stack.sh."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from tests.containers.stack_engine import StackEngine
from tests.services.containers.engine import Engine
from tests.services.ports import free_ports
from tests.services.service import ServiceError
from tests.services.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
SCRIPT = CHECKOUT / "deploy" / "stack.sh"
GATEWAYS = "rlm-1:19092,rlm-2:19093,rlm-3:19094"
_TOOLS = "/opt/kafka/bin"
_CLUSTER_VIEW = Path(__file__).with_name("cluster_view.py")
HOSTS = (1, 2, 3)
METADATA_TOPIC = "__remote_log_segment_metadata"
_BUILT_S = 900.0
_START_S = 480.0
_RECOVERED_S = 180.0
_PROJECT = "kafka-rlm-tests"
# A stack of a user publishes its ports at 127.0.0.1.
_ENVIRONMENT = {"COMPOSE_PROJECT_NAME": _PROJECT, "BIND_ADDRESS": "127.0.0.93"}


class ComposeStack:
    """The stack under its own project name; it runs in its `with` block. Not thread-safe."""

    def __init__(self, engine: Engine) -> None:
        """`engine` is the one that deploy/stack.sh finds."""
        self._engine = StackEngine(engine, _PROJECT)
        self.report: list[str] = []
        """Lines for the summary of a run: layers of the image, time to start, status."""
        self.printed: dict[str, str] = {}
        """By make's command: the output of the script that make runs to build or start it."""

    def __enter__(self) -> Self:
        """Build its image and start it. Raises ServiceError with the script's message."""
        self.printed["make images"] = self.script("images", deadline_s=_BUILT_S)
        self.report += _last_lines(self.printed["make images"], "Layers of")
        started = time.monotonic()
        try:
            self.printed["make up"] = self.script("up", deadline_s=_START_S)
            self.report.append(f"The stack was ready in {time.monotonic() - started:.0f} s.")
        except ServiceError:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it and delete its data."""
        self.script("down", "--volumes", deadline_s=_START_S)

    @contextmanager
    def spark(self) -> Iterator[None]:
        """Run Spark's master and a worker until the block ends."""
        spark = {"SPARK": "1"}
        self.printed["make images SPARK=1"] = self.script(
            "images", variables=spark, deadline_s=_BUILT_S
        )
        try:
            self.printed["make up SPARK=1"] = self.script(
                "up", variables=spark, deadline_s=_START_S
            )
            yield
        finally:
            self._remove("spark", "spark-worker", "spark-master")

    @contextmanager
    def one_broker(self, profile: str) -> Iterator[None]:
        """Run the broker and the rlm of `quickstart` or `streaming` until the block ends."""
        try:
            self.script("up", profile, deadline_s=_START_S)
            yield
        finally:
            self._remove(profile, profile, f"{profile}-broker")

    @contextmanager
    def prometheus(self) -> Iterator[str]:
        """Run the stack's Prometheus until the block ends; yield its URL."""
        (port,) = free_ports(1)
        started = ("compose", "--profile", "monitoring", "up", "-d", "--no-deps", "prometheus")
        try:
            self.script(*started, variables={"PROMETHEUS_PORT": str(port)})
            yield f"http://127.0.0.1:{port}"
        finally:
            self._remove("monitoring", "prometheus")

    def _remove(self, profile: str, *services: str) -> None:
        self.script("compose", "--profile", profile, "rm", "--stop", "--force", *services)

    def script(
        self,
        *arguments: str,
        variables: Mapping[str, str] = MappingProxyType({}),
        deadline_s: float = 180.0,
    ) -> str:
        """Run deploy/stack.sh; return its output. Raises ServiceError with its message."""
        done = subprocess.run(
            [SCRIPT, *arguments],
            env={**environment(), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=deadline_s,
            check=False,
        )
        if done.returncode:
            command = " ".join(arguments)
            raise ServiceError(f"stack.sh {command} failed: {done.stderr}{done.stdout}")
        return done.stdout

    def rlm(self, *arguments: str, host: int = 1) -> str:
        """Run a command of `rlm` next to the broker with this number; return its output."""
        return self._engine.run_in(f"rlm-{host}", "rlm", *arguments)

    def status(self, topic: str, *, host: int = 1) -> dict[str, Any]:
        """Return the document of `rlm status`, run next to the broker with this number."""
        document: dict[str, Any] = json.loads(self.rlm("status", topic, "--json", host=host))
        return document

    def broker_tool(self, tool: str, *arguments: str) -> str:
        """Run one of Kafka's tools next to broker 1, which no test stops; return its output.

        If a bootstrap broker has no network, a tool waits half a minute for it.
        """
        asked = ("--bootstrap-server", "broker-1:9092")
        return self._engine.run_in("broker-1", f"{_TOOLS}/{tool}.sh", *asked, *arguments)

    def partitions(self, topic: str) -> list[dict[str, Any]]:
        """Return what broker 1 knows of the topic's partitions (tests.containers.cluster_view)."""
        asked = (_CLUSTER_VIEW.read_text(), "broker-1:9092", topic)
        rows: list[dict[str, Any]] = json.loads(
            self._engine.run_in("rlm-1", "python3", "-c", *asked)
        )
        assert rows, f"{topic} has no partitions"
        return rows

    def client(self, pipeline: str) -> str:
        """Run a shell pipeline in a new container with Kafka's tools on PATH; return its output."""
        command = f"PATH=$PATH:{_TOOLS}; {pipeline}"
        return self.script("compose", "run", "--rm", "-T", "client", "sh", "-euc", command)

    def client_process(self, pipeline: str) -> subprocess.Popen[str]:
        """Start a shell pipeline in a new container, with pipes to its input and its output."""
        command = f"PATH=$PATH:{_TOOLS}; {pipeline}"
        return subprocess.Popen(
            [SCRIPT, "compose", "run", "--rm", "-T", "client", "sh", "-euc", command],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def replace(self, *services: str, tag: str) -> None:
        """Replace the services' containers that do not have the image with this tag."""
        changed = ("compose", "up", "-d", "--no-deps", *services)
        self.script(*changed, variables={"RLM_TAG": tag})

    def image_id(self, service: str) -> str:
        """Return the id of the image of a service's container."""
        return self.script("compose", "images", "--quiet", service).strip()

    def image_content(self, service: str) -> Iterator[tuple[str, bytes]]:
        """Yield names and content of all files of that image, and of its configuration."""
        return self._engine.image_content(self.image_id(service))

    def kill(self, service: str) -> None:
        """Kill a service's container. Unlike after `compose kill`, no engine restarts it."""
        self.script("compose", "stop", "-t", "0", service)

    def start(self, service: str) -> None:
        """Start a service that was killed."""
        self.script("compose", "start", service)

    def restart(self, *services: str) -> None:
        """Stop services as an orderly shutdown does, and start them again."""
        self.script("compose", "restart", *services)

    @contextmanager
    def without(self, service: str) -> Iterator[None]:
        """Kill a service, and start it when the block ends."""
        self.kill(service)
        try:
            yield
        finally:
            self.start(service)

    def cut_off(self, service: str) -> AbstractContextManager[None]:
        """Take a service off the network until the block ends."""
        return self._engine.cut_off(service)

    def replace_host(self, number: int) -> None:
        """Start a killed broker and its `rlm` again on a host whose disk is empty."""
        broker, rlm = f"broker-{number}", f"rlm-{number}"
        self.script("compose", "rm", "--stop", "--force", broker, rlm)
        self._engine.remove_volumes(f"{broker}-data", f"{rlm}-state", f"{rlm}-cache")
        self.script("compose", "up", "-d", "--no-deps", broker, rlm)

    def leads(self, number: int, topic: str) -> bool:
        """Return whether a broker leads a partition of a topic."""
        return any(each["leader"] == number for each in self.partitions(topic))

    def elect_preferred_leaders(self) -> None:
        """Make the first replica of each partition its leader, as in a balanced cluster."""
        every = ("--election-type", "preferred", "--all-topic-partitions")
        self.broker_tool("kafka-leader-election", *every)

    def wait_ready(self) -> None:
        """Wait until `rlm processes` shows all brokers, managers and gateways as ready."""
        wait_until(
            lambda: self.ready_processes() == {(role, n) for role in _ROLES for n in "123"},
            deadline_s=_RECOVERED_S,
            describe=lambda: f"all hosts are ready: {self.rlm('processes')}",
            interval_s=1.0,
            despite=ServiceError,
        )

    def ready_processes(self) -> set[tuple[str, str]]:
        """Return the roles and broker ids of ready processes."""
        return ready_processes(json.loads(self.rlm("processes", "--json")))


def _last_lines(text: str, first: str) -> list[str]:
    """Return the lines from the one with this beginning to the end."""
    lines = text.splitlines()
    return lines[next(i for i, line in enumerate(lines) if line.startswith(first)) :]


_ROLES = ("broker", "manager", "gateway")


def ready_processes(document: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return role and broker id of what `rlm processes --json` shows as ready.

    In the text of the table, the state "not ready" contains "ready", too.
    """
    return {
        (each["role"], str(each["broker_id"])) for each in document["processes"] if each["ready"]
    }


def environment() -> dict[str, str]:
    """Return the environment in which deploy/stack.sh works on the tests' stack."""
    return {**os.environ, **_ENVIRONMENT}
