"""Looks up topics, partitions and offsets in the cluster, and creates the dead-letter topic."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without __all__
    AdminClient,
    OffsetSpec,
    TopicDescription,
)
from confluent_kafka.cimpl import NewTopic

from rlmm.dead_letters.dead_letter import topic_configs
from rsm.secret_keys import without_credentials
from rsm.segment.errors import InvalidConfigError, RetriableError
from rsm.segment.ids import TopicIdPartition, id_from_text
from rsm.segment.ranges import OffsetRange
from spark_tools.connection import refused_client

MAX_TIMEOUT_MS = 3_600_000
"""The longest request timeout of librdkafka's rd_kafka_AdminOptions_set_request_timeout."""

_CHECK_ADDRESS = "Check the address and the security settings of the Kafka client"
_CHECK_RIGHTS = "Check the name and this client's ACLs (deploy/kafka/acls.sh)"
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class MissingTopicError(InvalidConfigError):
    """Reports that a topic does not exist in the cluster."""


def find_partitions(
    client: Mapping[str, str], topics: Sequence[str], *, timeout_ms: int
) -> dict[str, tuple[TopicIdPartition, ...]]:
    """Return all partitions of each topic, ascending.

    Raises MissingTopicError if a topic does not exist, and InvalidConfigError for any other
    failure, such as an unreachable cluster or a missing ACL.
    """
    found: dict[str, tuple[TopicIdPartition, ...]] = {}
    for topic, description in _describe(client, topics, timeout_ms).items():
        topic_id = id_from_text(str(description.topic_id))
        found[topic] = tuple(
            TopicIdPartition(topic_id=topic_id, topic=topic, partition=number)
            for number in sorted(each.id for each in description.partitions)
        )
    return found


def find_topics(
    client: Mapping[str, str], pattern: re.Pattern[str], *, timeout_ms: int
) -> tuple[str, ...]:
    """Return the topics whose full names match, ascending; omit Kafka's internal topics.

    Raises InvalidConfigError if none matches, or if the topics cannot be listed.
    """
    admin = _admin(client)
    try:
        every = admin.list_topics(timeout=_request_timeout_s(timeout_ms)).topics
    except KafkaException as exception:
        raise InvalidConfigError(
            "cannot list the topics",
            servers=without_credentials(client.get("bootstrap.servers", "")),
            reason=exception.args[0].str(),
            advice=_CHECK_ADDRESS,
        ) from exception
    found = sorted(name for name in every if name not in _INTERNAL and pattern.fullmatch(name))
    if not found:
        raise InvalidConfigError(
            "cannot find a topic: no topic's name matches the pattern",
            subscribePattern=pattern.pattern,
            advice="Check the pattern",
        )
    return tuple(found)


def find_local_offsets(
    client: Mapping[str, str],
    partitions: Sequence[TopicIdPartition],
    *,
    read_committed: bool,
    timeout_ms: int,
) -> dict[TopicIdPartition, OffsetRange]:
    """Return the range of offsets that each partition's leader has.

    With `read_committed`, the range ends at the last stable offset. Raises RetriableError if the
    offsets of a partition cannot be fetched.
    """
    admin = _admin(client)
    level = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
    locations = [TopicPartition(tip.topic, tip.partition) for tip in partitions]
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # ships untyped
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # ships untyped
    bounds: list[list[int]] = []
    try:
        for spec in (earliest, latest):
            asked = admin.list_offsets(
                dict.fromkeys(locations, spec),
                isolation_level=level,
                request_timeout=_request_timeout_s(timeout_ms),
            )
            bounds.append([asked[location].result().offset for location in locations])
    except KafkaException as exception:
        raise RetriableError(
            "cannot fetch the brokers' offsets", reason=exception.args[0].str()
        ) from exception
    return {
        tip: OffsetRange(start_offset=start_offset, end_offset=max(start_offset, end_offset))
        for tip, start_offset, end_offset in zip(partitions, *bounds, strict=True)
    }


def ensure_dead_letter_topic(
    client: Mapping[str, str],
    topic: str,
    *,
    partition_count: int,
    replicated_as: str,
    timeout_ms: int,
) -> None:
    """Create the dead-letter topic, whose records never expire, unless it exists.

    The new topic gets the replication factor of the topic `replicated_as`. Raises
    InvalidConfigError if the topic cannot be created or `replicated_as` cannot be found.
    """
    model = _describe(client, [replicated_as], timeout_ms)[replicated_as]
    replication_factor = min(len(each.replicas) for each in model.partitions)
    config = dict(topic_configs(replication_factor))
    wanted = NewTopic(topic, partition_count, replication_factor, config=config)
    admin = _admin(client)
    try:
        admin.create_topics([wanted], request_timeout=_request_timeout_s(timeout_ms))[
            topic
        ].result()
    except KafkaException as exception:
        error: KafkaError = exception.args[0]
        if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise InvalidConfigError(
                "cannot create the topic",
                topic=topic,
                reason=error.str(),
                advice="Create it beforehand, or grant the right to create it",
            ) from exception


def _describe(
    client: Mapping[str, str], topics: Sequence[str], timeout_ms: int
) -> dict[str, TopicDescription]:
    """Describe the topics. Raises the errors of find_partitions."""
    admin = _admin(client)
    asked = admin.describe_topics(
        TopicCollection(list(topics)), request_timeout=_request_timeout_s(timeout_ms)
    )
    found: dict[str, TopicDescription] = {}
    for topic, future in asked.items():
        try:
            found[topic] = future.result()
        except KafkaException as exception:
            error: KafkaError = exception.args[0]
            if error.code() < 0:  # A negative code means that librdkafka got no usable answer.
                raise InvalidConfigError(
                    "cannot find the topic: the brokers do not answer",
                    servers=without_credentials(client.get("bootstrap.servers", "")),
                    reason=error.str(),
                    advice=_CHECK_ADDRESS,
                ) from exception
            missing = error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            raise (MissingTopicError if missing else InvalidConfigError)(
                "cannot find the topic",
                topic=topic,
                servers=without_credentials(client.get("bootstrap.servers", "")),
                reason=error.str(),
                advice="Check the name" if missing else _CHECK_RIGHTS,
            ) from exception
    return found


def _request_timeout_s(timeout_ms: int) -> float:
    """Convert to seconds. Raises InvalidConfigError above MAX_TIMEOUT_MS."""
    if timeout_ms > MAX_TIMEOUT_MS:
        raise InvalidConfigError(
            "the timeout is invalid: it is too long",
            option="timeoutMs",
            found=timeout_ms,
            expected=f"at most {MAX_TIMEOUT_MS} ms",
            advice="Lower it",
        )
    return timeout_ms / 1000


def _admin(client: Mapping[str, str]) -> AdminClient:
    """Open a client. Raises InvalidConfigError for settings that librdkafka rejects."""
    try:
        return AdminClient(dict(client), logger=logging.getLogger("librdkafka.admin"))
    except KafkaException as exception:
        raise refused_client(client, exception.args[0].str()) from exception
