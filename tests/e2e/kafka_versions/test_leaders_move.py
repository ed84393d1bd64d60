"""Three brokers of each version, with `rlm` next to each: the lead moves, and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlmm.events.policy import topic_policies
from tests.e2e.kafka_versions.topic_ids import write_topic_ids
from tests.e2e.plain_consumer import read_records
from tests.e2e.three_brokers.three_hosts import ThreeHosts, broker_of, three_hosts
from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.kafka import KafkaCluster
from tests.services.kafka_versions import release_of


@pytest.mark.long
@pytest.mark.timeout(900)
def test_leader_when_it_moves_and_returns_then_all_epochs_are_stored_and_read_back(
    version: str, tmp_path: Path, topic_name: str
) -> None:
    with KafkaCluster(tmp_path / "kafka", brokers=3, release=release_of(version)) as cluster:
        topic = WrittenTopic(cluster, topic_name, partitions=1)
        replicas = (each.log_dirs[0] / f"{topic_name}-0" for each in cluster.brokers)
        write_topic_ids(cluster, replicas)
        with three_hosts(tmp_path, cluster) as hosts:
            topic.produce(2)
            topic.tier(hosts)
            first = broker_of(cluster, topic.leaders()[0])
            with cluster.without(first):
                topic.wait_led_without(first)
                topic.produce(2)
                topic.wait_trimmed()
            topic.produce(2)
            topic.wait_trimmed()

            read = read_records(hosts.bootstrap_servers, topic_name)
            epochs = _stored_epochs(hosts, topic_name)
            hosts.any_host.rlm("status", topic_name, "--check")
    assert read == [(each.offset, each.value) for each in topic.records[0]]
    assert len(epochs) >= 3
    assert epochs == sorted(set(epochs))


def _stored_epochs(hosts: ThreeHosts, topic: str) -> list[int]:
    with hosts.any_host.metadata() as metadata:
        (policy,) = [each for each in topic_policies(metadata) if each.topic == topic]
        (partition,) = metadata.partitions_of(policy.topic_id, topic)
        lineage = metadata.partition_state(partition).lineage
        return [entry.epoch for entry in lineage.entries]
