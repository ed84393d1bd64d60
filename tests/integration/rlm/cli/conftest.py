from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.integration.rlm.cli.rlm_command import Rlm
from tests.services.kafka import KafkaCluster


@pytest.fixture
def rlm(kafka: KafkaCluster, tmp_path: Path) -> Rlm:
    prefix = "rlmm.config.remote.log.metadata.topic"
    name = f"__metadata-{uuid.uuid4().hex[:8]}"
    config = tmp_path / "rlm.properties"
    config.write_text(
        f"bootstrap.servers={kafka.bootstrap_servers}\n"
        f"{prefix}.name={name}\n{prefix}.num.partitions=2\n{prefix}.replication.factor=1\n"
        "remote.log.manager.task.interval.ms=500\n"
    )
    return Rlm(config=config, metadata_topic=name)
