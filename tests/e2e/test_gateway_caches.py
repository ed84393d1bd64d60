"""A gateway's caches drop data that no client can read; the test inspects the directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from rlmm.events.policy import topic_policies
from tests.e2e.broker_host import BrokerHost
from tests.integration.rlm.gateway.reading import read_from
from tests.integration.rlm.gateway.tiered_topic import VALUES_PER_SEGMENT, TieredTopic
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.ports import free_ports
from tests.services.waiting import wait_until

_DEADLINE_S = 60.0


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "chunk-cache"


@pytest.fixture
def gateway(host: BrokerHost, cache: Path) -> str:
    """The address of the gateway that `rlm run` will start; it caches on disk."""
    (port,) = free_ports(1)
    host.set(
        **{
            "gateway.listener": f"127.0.0.1:{port}",
            "remote.copy.attempt.timeout.ms": "2000",
            "remote.orphan.grace.ms": "0",
            "remote.topic.deletion.grace.ms": "1000",
            "rsm.config.fetch.chunk.cache.path": str(cache),
        }
    )
    return f"127.0.0.1:{port}"


def _cached(cache: Path, values: list[bytes]) -> list[int]:
    """Return the values that the files of the cache contain, by offset."""
    contents = [path.read_bytes() for path in cache.rglob("*") if path.is_file()]
    return [
        offset for offset, value in enumerate(values) if any(value in each for each in contents)
    ]


def test_caches_when_the_log_start_moves_and_the_topic_is_deleted_then_hold_nothing_of_it(
    kafka: KafkaCluster, host: BrokerHost, gateway: str, cache: Path, topic_name: str
) -> None:
    """Scenario 120: both data deleted while the gateway runs, and while it does not run."""
    topic = TieredTopic(kafka, topic_name)
    topic.produce(4)
    values = topic.values[0]
    topic.tier(host)
    start_offset = 2 * VALUES_PER_SEGMENT
    with host.running():
        host.wait_ready()
        assert [each.value() for each in read_from(gateway, topic_name)] == values
        assert 0 in _cached(cache, values)

        admin = admin_client(gateway)
        for deleted in admin.delete_records([TopicPartition(topic_name, 0, start_offset)]).values():
            deleted.result(30.0)
        wait_until(
            lambda: 0 not in _cached(cache, values),
            _DEADLINE_S,
            lambda: f"what lies below the log start is gone: {_cached(cache, values)[:1]}",
        )
        left = _cached(cache, values)
        read = [each.value() for each in read_from(gateway, topic_name, offset=start_offset)]
    assert read == values[start_offset:]
    assert left
    assert topic.local_start_offset() > left[0]

    host.set(**{"gateway.listener": ""})
    with host.metadata() as metadata, host.running():
        admin = admin_client(kafka.bootstrap_servers)
        admin.delete_topics([topic_name])[topic_name].result(30.0)
        wait_until(
            lambda: not list(topic_policies(metadata)), _DEADLINE_S, "all of the topic is deleted"
        )
    assert _cached(cache, values)

    host.set(**{"gateway.listener": gateway})
    with host.running():
        wait_until(
            lambda: not _cached(cache, values),
            _DEADLINE_S,
            lambda: f"the cache holds nothing of a deleted topic: {_cached(cache, values)[:1]}",
        )
