"""A broker of each version of Kafka, and a topic of it that can be tiered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.broker_host import BrokerHost
from tests.e2e.kafka_versions.topic_ids import write_topic_ids
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster
from tests.services.kafka_versions import NEWEST_VERSION, VERSIONS, is_28, release_of
from tests.services.ports import free_ports

collect_ignore = [] if any(map(is_28, VERSIONS)) else ["test_kafka_28.py"]
# The tests of other folders run on the newest version.
_PARAMETERS = [
    pytest.param(each, marks=pytest.mark.long if each == NEWEST_VERSION else ())
    for each in VERSIONS
]


@pytest.fixture(scope="module", params=_PARAMETERS)
def version(request: pytest.FixtureRequest) -> str:
    """Each version that this run tests."""
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def kafka(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A cluster of one broker for all tests of a version."""
    directory = tmp_path_factory.mktemp(f"kafka-{version}")
    with KafkaCluster(directory, release=release_of(version)) as cluster:
        yield cluster


@pytest.fixture
def gateway(host: BrokerHost) -> str:
    """The address of the gateway that `rlm run` will start."""
    (port,) = free_ports(1)
    host.set(**{"gateway.listener": f"127.0.0.1:{port}"})
    return f"127.0.0.1:{port}"


@pytest.fixture
def log(kafka: KafkaCluster, host: BrokerHost, topic_name: str) -> TieredLog:
    """A topic whose id the broker has written."""
    log = TieredLog.create(kafka, topic_name, host.store)
    write_topic_ids(kafka, [log.directory])
    return log
