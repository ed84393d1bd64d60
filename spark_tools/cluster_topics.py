"""What is asked of the cluster: the ids and partitions of the topics that a user names."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rsm.segment.errors import InvalidConfigError
from rsm.segment.ids import TopicIdPartition, id_from_text


def find_partitions(
    client: Mapping[str, str], topics: Sequence[str], *, timeout_ms: int
) -> dict[str, tuple[TopicIdPartition, ...]]:
    """All partitions of each topic, ascending.

    InvalidConfigError names the topic that there is not, or says that the cluster can't be reached.
    """
    admin = AdminClient(dict(client), logger=logging.getLogger("librdkafka.admin"))
    asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=timeout_ms / 1000)
    found: dict[str, tuple[TopicIdPartition, ...]] = {}
    for topic, future in asked.items():
        try:
            description = future.result()
        except KafkaException as exception:
            raise InvalidConfigError(
                "the topic can't be found",
                topic=topic,
                servers=client.get("bootstrap.servers"),
                reason=exception.args[0].str(),
            ) from exception
        topic_id = id_from_text(str(description.topic_id))
        found[topic] = tuple(
            TopicIdPartition(topic_id=topic_id, topic=topic, partition=number)
            for number in sorted(each.id for each in description.partitions)
        )
    return found


def ensure_topic(
    client: Mapping[str, str], topic: str, *, partition_count: int, timeout_ms: int
) -> None:
    """Create a topic that keeps its records for ever, with the cluster's replication factor.

    Nothing happens if it is there. InvalidConfigError if it can't be created.
    """
    admin = AdminClient(dict(client), logger=logging.getLogger("librdkafka.admin"))
    config = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"}
    wanted = NewTopic(topic, partition_count, config=config)
    try:
        admin.create_topics([wanted], request_timeout=timeout_ms / 1000)[topic].result()
    except KafkaException as exception:
        error: KafkaError = exception.args[0]
        if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise InvalidConfigError(
                "a topic can't be created", topic=topic, reason=error.str()
            ) from exception
