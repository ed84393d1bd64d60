"""A host with its own store next to the session's broker, and a topic to tier there.

The store is a directory; with the fixture `s3_gateway_port` it is a bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.e2e.s3_store import s3_store, s3_with_bucket
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.ports import free_ports
from tests.services.provider import ServiceProvider
from tests.services.s3 import S3Server, credentials_environment


@pytest.fixture
def host(kafka: KafkaCluster, tmp_path: Path, topic_name: str) -> BrokerHost:
    return BrokerHost(tmp_path, kafka, metadata_topic=f"{topic_name}-metadata")


@pytest.fixture
def log(kafka: KafkaCluster, host: BrokerHost, topic_name: str) -> TieredLog:
    return TieredLog.create(kafka, topic_name, host.store)


@pytest.fixture
def s3_server(services: ServiceProvider, tmp_path: Path) -> Iterator[S3Server]:
    with s3_with_bucket(services, tmp_path / "s3") as server:
        yield server


@pytest.fixture
def s3_gateway_port(host: BrokerHost, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> int:
    """The gateway's port of the host; its store is the bucket."""
    for name, value in credentials_environment().items():
        monkeypatch.setenv(name, value)
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}", **s3_store(s3_server)})
    return port
