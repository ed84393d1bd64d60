"""`rlm debug bundle` against a real broker without managers, as a user types it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from tests.e2e.broker_host import BrokerHost
from tests.services.kafka import KafkaCluster

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

    with tarfile.open(out) as tar:
        contents = {
            name: content.read()
            for name in tar.getnames()
            if (content := tar.extractfile(name)) is not None
        }
    assert printed.splitlines()[-1] == str(out)
    assert json.loads(contents["status.json"])["partitions"] == []
    assert json.loads(contents["processes.json"])["processes"]
    assert [name for name, content in contents.items() if SECRET.encode() in content] == []
    assert again.returncode == 2
