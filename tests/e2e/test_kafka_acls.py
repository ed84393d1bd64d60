"""The ACLs of deploy/kafka/acls.sh: each role works with its own ACLs; brokers deny all else."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import SEGMENT_BYTES, TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.kafka_runtime import run_tool
from tests.services.ports import free_port_range, free_ports, is_listening
from tests.services.process import ServiceProcess
from tests.services.waiting import wait_until

_CHECKOUT = Path(__file__).resolve().parents[2]
_SCRIPT = _CHECKOUT / "deploy" / "kafka" / "acls.sh"
_ACL_COMMAND = "org.apache.kafka.tools.AclCommand"
_METADATA_TOPIC = "__remote_log_segment_metadata"
_TOPIC, _OTHER_TOPIC = "orders", "payments"
_ROLES = ("host", "gateway", "operator", "jobs")
_READER = "reader"
_PASSWORD = "of-tests"  # noqa: S105 - guards nothing
_DEADLINE_S = 90.0
_TIMEOUT_S = 900  # a dozen processes and a Spark, one after the other, on a loaded machine
_DENIED = re.compile(r"Principal = User:(\w+) is Denied operation = (\w+) .*? on resource = (\S+)")


class _Secured:
    """A broker whose users may do only what an ACL allows; the tests are its super user."""

    def __init__(self, directory: Path) -> None:
        (self._port,) = free_ports(1)
        # A process, because Kafka's images log what the authorizer denies to another file.
        self.cluster = KafkaCluster(directory)
        properties = self.cluster.broker.properties
        for key in ("listeners", "advertised.listeners"):
            properties[key] += f",LOGIN://127.0.0.1:{self._port}"
        properties["listener.security.protocol.map"] += ",LOGIN:SASL_PLAINTEXT"
        users = " ".join(f'user_{name}="{_PASSWORD}"' for name in (*_ROLES, _READER))
        properties |= {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
            ),
        }

    def login(self, user: str) -> dict[str, str]:
        """Return settings of librdkafka that log a user in."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self._port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": _PASSWORD,
        }

    def settings(self, user: str) -> dict[str, str]:
        """Return the login of a user as settings of rlm."""
        login = self.login(user)
        servers = login.pop("bootstrap.servers")
        return {"bootstrap.servers": servers} | {f"client.{k}": v for k, v in login.items()}

    def allow(self, role: str) -> None:
        """Run the commands that the script prints for a role."""
        options = ("--bootstrap-server", self.cluster.bootstrap_servers)
        printed = subprocess.run(
            [_SCRIPT, role, f"User:{role}", _TOPIC, "--", *options],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for line in printed.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "kafka-acls.sh"
            run_tool(_ACL_COMMAND, *arguments)

    def allow_reading(self) -> None:
        """Let a client read the topic, in its group."""
        run_tool(
            _ACL_COMMAND,
            *("--bootstrap-server", self.cluster.bootstrap_servers, "--add"),
            *("--allow-principal", f"User:{_READER}", "--operation", "Read"),
            *("--topic", _TOPIC, "--group", _READER),
        )

    def denied(self) -> set[tuple[str, ...]]:
        """Return the roles, operations and resources that the broker denied."""
        log = (self.cluster.broker.directory / "broker.log").read_text()
        return {each for each in _DENIED.findall(log) if each[0] in _ROLES}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Secured]:
    secured = _Secured(tmp_path_factory.mktemp("secured"))
    with secured.cluster:
        secured.cluster.create_topic(_OTHER_TOPIC)
        yield secured


@pytest.fixture
def host(secured: _Secured, tmp_path: Path) -> BrokerHost:
    (gateway_port,) = free_ports(1)
    settings = {**secured.settings("host"), "gateway.listener": f"127.0.0.1:{gateway_port}"}
    return BrokerHost(tmp_path, secured.cluster, metadata_topic=_METADATA_TOPIC, settings=settings)


@pytest.mark.timeout(_TIMEOUT_S)
def test_roles_when_each_has_just_its_acls_then_nothing_that_they_do_is_denied(
    secured: _Secured, host: BrokerHost, tmp_path: Path
) -> None:
    """One test, because each role continues what the others did."""
    log = TieredLog.create(secured.cluster, _TOPIC, host.store)
    for role in _ROLES:
        secured.allow(role)
    secured.allow_reading()

    with host.running():
        host.wait_ready()
        operator = _config(host, secured.settings("operator"), tmp_path / "operator.properties")
        _rlm(operator, "topic", "enable", _TOPIC, "--local-retention-bytes", "1")
        log.produce(3)
        wait_until(lambda: log.local_start_offset() > 0, _DEADLINE_S, "a trim")
        _rlm(operator, "status", _TOPIC)
        _rlm(operator, "read", f"{_TOPIC}:0", "--to", "1")
        listener = host.config.gateway.listener
        all_offsets = [*range(log.end_offset())]
        assert _read(secured, str(listener)) == all_offsets
        assert _dead_letters(operator, "list") == []
        _rlm(operator, "pause", _TOPIC, "trim")
        with _cluster_gateway(host, secured, tmp_path) as address:
            assert _read(secured, address) == all_offsets
    with _refused_deletions(host):
        _keep_segments(operator, 2)
        retried = _dead_letters(operator, "retry", "--yes")
        assert [each["state"] for each in retried] == ["DONE"]
        _keep_segments(operator, 1)
        jobs = _config(host, secured.settings("jobs"), tmp_path / "jobs.properties")
        printed = _run_jobs(
            f"rlm-repair --config {jobs} --checkpoint {tmp_path / 'checkpoint'} --yes",
            f"rlm-export --config {jobs} {_TOPIC} {tmp_path / 'lake'}",
            f"rlm-audit --config {jobs}",
        )
        assert "repaired 2\n" in printed  # the first has nothing left to delete
        assert f"{_TOPIC}-0 [" in printed
        assert _dead_letters(operator, "list") == []
        _rlm(operator, "topic", "disable", _TOPIC)

    assert secured.denied() == set()


def test_user_when_no_acl_allows_a_topic_then_the_broker_denies_it(secured: _Secured) -> None:
    with closing(Consumer({**secured.login(_READER), "group.id": _READER})) as consumer:
        found = consumer.list_topics(_OTHER_TOPIC, timeout=30.0).topics[_OTHER_TOPIC]

    assert found.error is not None
    assert found.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def _config(
    host: BrokerHost, settings: Mapping[str, str], path: Path, *, without: tuple[str, ...] = ()
) -> Path:
    """Write a copy of a host's configuration with other settings; return its path."""
    lines = host.config_path.read_text().splitlines()
    merged = {**dict(line.split("=", 1) for line in lines), **settings}
    path.write_text("".join(f"{k}={v}\n" for k, v in merged.items() if k not in without))
    return path


def _rlm(config: Path, *arguments: str) -> str:
    return _run(sys.executable, "-m", "rlm", *arguments, "--config", str(config))


def _dead_letters(config: Path, command: str, *arguments: str) -> list[dict[str, object]]:
    """Return the dead letters that `rlm dlq` prints."""
    printed = json.loads(_rlm(config, "dlq", command, _TOPIC, "--json", *arguments))
    found: list[dict[str, object]] = printed["dead_letters"]
    return found


def _keep_segments(config: Path, count: int) -> None:
    """Have the oldest segments expire, and wait until the refused deletion is a dead letter."""
    size = str(count * SEGMENT_BYTES)
    _rlm(config, "topic", "alter", _TOPIC, "--retention-bytes", size, "--yes")
    wait_until(lambda: len(_dead_letters(config, "list")) == 1, _DEADLINE_S, "a dead letter")


@contextmanager
def _refused_deletions(host: BrokerHost) -> Iterator[None]:
    """Run a manager whose store deletes nothing; the first refusal makes a dead letter."""
    host.set(**{"remote.delete.max.attempts": "1"})
    arguments = ("--config", str(host.config_path), "--refuse", "/")
    with host.started("-m", "tests.e2e.refusing_store_manager", *arguments):
        yield


def _run_jobs(*commands: str) -> str:
    return _run(sys.executable, "-m", "tests.e2e.one_spark", *commands)


def _run(*command: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=400.0, check=False, cwd=_CHECKOUT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _read(secured: _Secured, gateway: str) -> list[int]:
    """Return the offsets that a client reads through a gateway, from 0 to the end."""
    settings = {**secured.login(_READER), "bootstrap.servers": gateway, "group.id": _READER}
    settings |= {"auto.offset.reset": "error"}
    with closing(Consumer({**settings, "enable.auto.commit": False})) as consumer:
        partition = TopicPartition(_TOPIC, 0, 0)
        _, end_offset = consumer.get_watermark_offsets(partition, timeout=30.0)
        consumer.assign([partition])
        offsets: list[int] = []
        while not offsets or offsets[-1] + 1 < end_offset:
            for message in consumer.consume(500, timeout=0.5):
                assert message.error() is None, message.error()
                offsets.append(message.offset())  # type: ignore[arg-type]  # it has no error
    return offsets


@contextmanager
def _cluster_gateway(host: BrokerHost, secured: _Secured, directory: Path) -> Iterator[str]:
    """Run `rlm gateway` for the whole cluster; yield its address."""
    port = free_port_range(3)
    settings = {
        **secured.settings("gateway"),
        "gateway.listener": f"127.0.0.1:{port}",
        "rsm.config.storage.read.only": "true",
        "state.dir": str(directory / "gateway-state"),
    }
    without = ("log.dirs", "metrics.listener")
    config = _config(host, settings, directory / "gateway.properties", without=without)
    process = ServiceProcess(
        [sys.executable, "-m", "rlm", "gateway", "--config", str(config)],
        log_path=directory / "gateway.log",
        directory=_CHECKOUT,
    )
    try:
        wait_until(lambda: is_listening(port), _DEADLINE_S, process.log_tail)
        yield f"127.0.0.1:{port}"
        assert process.terminate(deadline_s=20.0) == 0, process.log_tail()
    finally:
        process.kill(children=True)
