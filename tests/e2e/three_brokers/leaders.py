"""Moves the leaders of a topic's partitions, as an administrator does."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from confluent_kafka import KafkaException

from tests.e2e.three_brokers.written_topic import WrittenTopic
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.kafka_runtime import run_tool
from tests.services.waiting import wait_until

_REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
_DEADLINE_S = 120.0


def move_leaders(cluster: KafkaCluster, topic: WrittenTopic) -> None:
    """Swap each partition's first two replicas; wait until the new first replica leads."""
    metadata = admin_client(cluster.bootstrap_servers).list_topics(topic.name, 10.0)
    wanted = {
        number: [*found.replicas[1:], found.replicas[0]]
        for number, found in metadata.topics[topic.name].partitions.items()
    }
    _execute(cluster, topic, wanted)
    first = {number: replicas[0] for number, replicas in wanted.items()}

    def are_first() -> bool:
        cluster.restore_leaders()
        return topic.leaders() == first

    wait_until(are_first, _DEADLINE_S, f"leaders are {first}", despite=KafkaException)


def reassign(cluster: KafkaCluster, topic: WrittenTopic, wanted: dict[int, list[int]]) -> None:
    """Assign these replicas to partitions; wait until all are in sync and the first leads."""
    _execute(cluster, topic, wanted)

    def replicas() -> dict[int, tuple[list[int], list[int]]]:
        metadata = admin_client(cluster.bootstrap_servers).list_topics(topic.name, 10.0)
        found = metadata.topics[topic.name].partitions
        return {each: (found[each].replicas, sorted(found[each].isrs)) for each in wanted}

    expected = {number: (each, sorted(each)) for number, each in wanted.items()}
    what = f"replicas and in sync: {expected}"
    wait_until(lambda: replicas() == expected, _DEADLINE_S, what, despite=KafkaException)
    cluster.restore_leaders()


def _execute(cluster: KafkaCluster, topic: WrittenTopic, wanted: dict[int, list[int]]) -> None:
    plan = {
        "version": 1,
        "partitions": [
            {"topic": topic.name, "partition": number, "replicas": replicas}
            for number, replicas in wanted.items()
        ],
    }
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "plan.json"
        path.write_text(json.dumps(plan))
        server = ("--bootstrap-server", cluster.bootstrap_servers)
        run_tool(_REASSIGN, *server, "--reassignment-json-file", str(path), "--execute")
