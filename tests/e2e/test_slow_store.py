"""A store made slow by the rehearsal settings: copies adapt, local reads are not affected."""

from __future__ import annotations

from uuid import uuid4

import httpx

from rlmm.events.policy import UNLIMITED, PolicyState, TopicPolicy, TopicPolicyChanged
from rlmm.spi import RemoteLogMetadataManager
from rsm.segment.metadata import SegmentState
from tests.e2e.broker_host import BrokerHost
from tests.e2e.plain_consumer import read_all
from tests.integration.rlm.gateway.tiered_topic import TieredTopic
from tests.services.kafka import KafkaCluster
from tests.services.ports import free_ports
from tests.services.waiting import wait_until

PARTITIONS = 12
SEGMENTS = 2
_DEADLINE_S = 60.0


def _stored_count(metadata: RemoteLogMetadataManager, topic: TieredTopic) -> int:
    finished = (SegmentState.COPY_SEGMENT_FINISHED,)
    return sum(
        len(list(metadata.list_remote_log_segments(topic.partition(number), states=finished)))
        for number in range(PARTITIONS)
    )


def _concurrency_above(least: float, host: BrokerHost) -> float:
    """Wait until more than `least` copies may run at once; return the number."""

    def concurrency() -> float:
        found = max(host.metrics("rlm_copy_concurrency").values())
        return found if found > least else 0.0

    return wait_until(
        concurrency,
        _DEADLINE_S,
        f"more than {least} copies at once",
        despite=(httpx.HTTPError, ValueError),
    )


def _tier(metadata: RemoteLogMetadataManager, topic: TieredTopic) -> None:
    """Tier the topic with a local retention that trims nothing."""
    policy = TopicPolicy(
        topic=topic.name,
        topic_id=topic.partition().topic_id,
        state=PolicyState.ACTIVE,
        retention_ms=UNLIMITED,
        retention_bytes=UNLIMITED,
        local_retention_ms=UNLIMITED,
    )
    assert metadata.publish(TopicPolicyChanged(event_id=uuid4(), policy=policy)).accepted


def test_copies_when_the_store_is_slow_then_more_run_at_once_and_local_reads_continue(
    kafka: KafkaCluster, host: BrokerHost, topic_name: str
) -> None:
    """Scenario 95: local data can be read while every copy waits for the store."""
    (port,) = free_ports(1)
    host.set(
        **{
            "gateway.listener": f"127.0.0.1:{port}",
            "remote.log.manager.copier.thread.pool.size": str(PARTITIONS),
            "rsm.config.storage.slow.delay.ms": "2500",
        }
    )
    topic = TieredTopic(kafka, topic_name, partitions=PARTITIONS)
    for number in range(PARTITIONS):
        topic.produce(SEGMENTS, partition=number)
    with host.running(), host.metadata() as metadata:
        host.wait_ready()
        at_first = _concurrency_above(0, host)
        _tier(metadata, topic)
        _concurrency_above(at_first, host)

        read = read_all(f"127.0.0.1:{port}", topic_name)

        assert read == list(range(len(topic.values[0])))
        assert _stored_count(metadata, topic) < PARTITIONS * SEGMENTS
