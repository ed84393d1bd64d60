"""`rlm topic resolve` against a real broker. R5, R6."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from confluent_kafka import Producer, TopicPartition

from rlmm.events.claim import LeadershipClaimed
from rlmm.events.log_start import LogStartAdvanced
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import Writer
from tests.e2e.broker_host import BrokerHost
from tests.e2e.tiered_log import TieredLog
from tests.services.kafka import KafkaCluster, admin_client


def test_resolve_when_somebody_moved_the_brokers_start_then_accepted_or_made_the_log_start(
    kafka: KafkaCluster, tmp_path: Path, topic_name: str
) -> None:
    """R6, scenario 83: the command shows and accepts the gap; an option moves the log start."""
    host = BrokerHost(tmp_path, kafka, metadata_topic=f"{topic_name}-metadata")
    log = TieredLog.create(kafka, topic_name, host.store)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for number in range(10):
        producer.produce(topic_name, str(number), partition=0)
    assert producer.flush(30.0) == 0
    writer = Writer(broker_id=1, leader_epoch=0, incarnation=uuid4())
    with host.metadata() as metadata:
        log.set_policy(metadata)
        for event in (
            LeadershipClaimed(
                event_id=uuid4(),
                topic_id_partition=log.partition,
                writer=writer,
                lineage=Lineage.of((0, 0)),
            ),
            LogStartAdvanced(
                event_id=uuid4(),
                topic_id_partition=log.partition,
                writer=writer,
                offset=0,
                reason="log start when tiering began",
            ),
        ):
            assert metadata.publish(event).accepted
        admin = admin_client(kafka.bootstrap_servers)
        deletion = TopicPartition(topic_name, 0, 5)
        admin.delete_records([deletion])[deletion].result(10.0)

        shown = host.rlm("topic", "resolve", topic_name, "--dry-run")
        host.rlm("topic", "resolve", f"{topic_name}:0", "--yes")
        assert metadata.caught_up(log.partition)
        accepted = metadata.partition_state(log.partition)
        again = host.rlm("topic", "resolve", topic_name, "--yes")

    assert "begins at 5, but rlm moved its start only to 0" in shown
    assert (accepted.accepted_start_offset, accepted.log_start_requested_offset) == (5, None)
    assert "nothing to resolve" in again
