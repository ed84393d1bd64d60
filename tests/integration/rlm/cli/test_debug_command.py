"""`rlm debug bundle` against a real broker, as a user types it."""

from __future__ import annotations

import json
import os
import re
import signal
import tarfile
from pathlib import Path

from rlm.config.effective import MASK
from tests.e2e.broker_host import BrokerHost
from tests.services.kafka import KafkaCluster
from tests.services.ports import free_ports

SECRET = "s3cr3t-value"  # noqa: S105 - looked for in the bundle


def test_debug_bundle_when_there_is_a_cluster_then_its_status_and_processes_are_in_it(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    host = BrokerHost(
        tmp_path,
        kafka,
        metadata_topic=f"{topic_name}-metadata",
        settings={"client.sasl.password": SECRET},
    )
    out = tmp_path / "bundle.tar.gz"

    printed = host.rlm("debug", "bundle", "--out", str(out))
    again = host.try_rlm("debug", "bundle", "--out", str(out))

    contents = _members(out)
    assert printed.splitlines()[-1] == str(out)
    assert json.loads(contents["status.json"])["partitions"] == []
    assert json.loads(contents["processes.json"])["processes"]
    assert [name for name, content in contents.items() if SECRET in content] == []
    assert again.returncode == 2


def test_debug_bundle_when_processes_run_then_their_log_lines_are_in_it_without_secrets(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    """Every process logs the secrets. A frozen manager cannot answer."""
    (port,) = free_ports(1)
    host = BrokerHost(
        tmp_path,
        kafka,
        metadata_topic=f"{topic_name}-metadata",
        settings={
            "gateway.listener": f"127.0.0.1:{port}",
            "process.heartbeat.interval.ms": "30000",
            "client.sasl.password": "http_address",
            "client.ssl.key.password": "process started",
        },
    )
    with host.running():
        host.wait_ready()
        answered = _bundle(host, tmp_path / "answered.tar.gz")
        (manager,) = _pids(host, "manager")
        os.kill(manager, signal.SIGSTOP)
        try:
            unanswered = _bundle(host, tmp_path / "unanswered.tar.gz")
        finally:
            os.kill(manager, signal.SIGCONT)

    logged = {path.name: path.read_bytes() for path in (host.state_dir / "log").iterdir()}
    printed = host.log_path.read_text()
    assert "worker started process=manager http_address=" in printed
    assert "process started child=gateway" in printed
    assert logged.keys() == {"gateway.log", "manager.log", "supervisor.log"}
    for process in ("manager", "gateway"):
        line = f"worker started process={process} {MASK}="
        assert line in answered[f"host/log/{process}.log"]
        assert line in _only(answered, "managers/", ".log.txt")
        assert line in unanswered[f"host/log/{process}.log"]
        assert f"{MASK} child={process}" in answered["host/log/supervisor.log"]
    assert "cannot be reached" in _only(unanswered, "managers/", ".log.txt.error.txt")
    assert ".log.txt.error.txt  " in unanswered["manifest.txt"]
    for text in (*answered.values(), *unanswered.values(), *map(bytes.decode, logged.values())):
        assert "http_address=" not in text
        assert "process started" not in text


def _bundle(host: BrokerHost, path: Path) -> dict[str, str]:
    host.rlm("debug", "bundle", "--out", str(path))
    return _members(path)


def _members(path: Path) -> dict[str, str]:
    with tarfile.open(path) as tar:
        return {
            name.partition("/")[2]: content.read().decode()
            for name in tar.getnames()
            if (content := tar.extractfile(name)) is not None
        }


def _only(contents: dict[str, str], folder: str, suffix: str) -> str:
    (found,) = (
        content
        for name, content in contents.items()
        if name.startswith(folder) and name.endswith(suffix)
    )
    return found


def _pids(host: BrokerHost, process: str) -> list[int]:
    pattern = rf" child={process} pid=(\d+)"
    return [int(pid) for pid in re.findall(pattern, host.log_path.read_text())]
