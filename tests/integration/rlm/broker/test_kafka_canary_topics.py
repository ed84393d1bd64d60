"""A real broker accepts the canary's old records, although the cluster's default refuses them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rlm.broker.topics.kafka_canary_topics import KafkaCanaryTopics
from rlm.facts.canary_records import CanaryWritten
from rlm.policy.request.canary import CanaryTopic, canary_topic
from rsm.segment.errors import RetriableError
from tests.services.kafka import KafkaCluster
from tests.services.provider import ServiceProvider

_TIMEOUT_MS = 30_000
_BEFORE = "message.timestamp.before.max.ms"


@pytest.fixture(scope="module")
def cluster(
    services: ServiceProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaCluster]:
    """One broker that takes records of the last minute only."""
    directory = Path(tmp_path_factory.mktemp("kafka"))
    properties = {f"log.{_BEFORE}": "60000"}
    with services.kafka(directory, properties=properties) as cluster:
        yield cluster


def _topic(cluster: KafkaCluster, unique: str) -> CanaryTopic:
    return canary_topic(
        (cluster.broker.node_id,),
        unique=unique,
        now_ms=int(time.time() * 1000),
        rounds=4,
        max_replicas=1,
        trim_min_age_ms=0,
    )


def _canaries(cluster: KafkaCluster) -> KafkaCanaryTopics:
    return KafkaCanaryTopics(lambda _: {"bootstrap.servers": cluster.bootstrap_servers})


def _written(
    cluster: KafkaCluster, topic: CanaryTopic, configs: Mapping[str, str]
) -> CanaryWritten:
    canaries = _canaries(cluster)
    canaries.create(topic.name, topic.replicas, configs, _TIMEOUT_MS)
    records = topic.round(0, int(time.time() * 1000))
    return canaries.write(None, topic.name, records, _TIMEOUT_MS)


def test_records_when_the_cluster_refuses_old_ones_then_the_canary_topic_takes_them(
    cluster: KafkaCluster,
) -> None:
    topic, other = _topic(cluster, "a"), _topic(cluster, "b")
    configs = topic.config_choices[0]
    of_the_cluster = {name: value for name, value in configs.items() if name != _BEFORE}

    done = _written(cluster, topic, configs)
    refused = _written(cluster, other, of_the_cluster)

    assert (done.problem, len(done.positions)) == ("", 1)
    assert refused.problem
    assert refused.positions == {}


def test_topic_when_the_broker_does_not_know_a_config_then_the_error_says_so(
    cluster: KafkaCluster,
) -> None:
    """Kafka 4 has no `message.timestamp.difference.max.ms`; earlier ones lack its successors."""
    topic = _topic(cluster, "c")

    with pytest.raises(RetriableError) as raised:
        _canaries(cluster).create(topic.name, topic.replicas, topic.config_choices[1], _TIMEOUT_MS)

    assert raised.value.context["error"] == "INVALID_CONFIG"
