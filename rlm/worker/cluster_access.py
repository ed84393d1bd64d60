"""Opens a process's access to the cluster and the metadata topic, from its configuration.

Opening sends nothing to the cluster. Wrong settings raise InvalidConfigError at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlm.broker.bootstrap import Bootstrap
from rlm.config.sections import ClusterConfig, ManagerConfig, MetadataConfig
from rlm.wire.connection import ConnectionSettings, Connector
from rlm.wire.security.settings import security_of
from rlmm.topic.event_topic import EventTopic
from rlmm.topic.kafka import KafkaTimeouts, KafkaTopic
from rlmm.topic.shape import TopicSettings
from rsm.segment.clock import Clock

# This includes the broker's first response: a stopped or frozen host delays a request by it.
_CONNECT_TIMEOUT_MS = 5_000
_REQUEST_TIMEOUT_MS = 30_000
# A follower waits as long as Kafka's consumers by default. A reader waits for a short time, so that
# a command reads an empty topic at once.
_FOLLOWER_FETCH_WAIT_MS = 500
_READER_FETCH_WAIT_MS = 100


def open_bootstrap(
    cluster: ClusterConfig, clock: Clock, *, timeout_ms: int = _REQUEST_TIMEOUT_MS
) -> Bootstrap:
    """Open the access to any broker of the cluster.

    `timeout_ms` bounds each request, each message of a login, and all attempts to connect to the
    bootstrap servers together.
    """
    servers = [(server.host, server.port) for server in cluster.bootstrap_servers]
    settings = ConnectionSettings(
        security=security_of(cluster.client.librdkafka()),
        connect_timeout_ms=max(1, min(_CONNECT_TIMEOUT_MS, timeout_ms // len(servers))),
        request_timeout_ms=timeout_ms,
    )
    return Bootstrap(servers, Connector(settings, clock))


def client_properties(config: ClusterConfig) -> Mapping[str, str]:
    """Return librdkafka's configuration for that cluster, with secrets in clear text."""
    return {**config.client.librdkafka(), "bootstrap.servers": config.bootstrap_text}


def open_metadata_topic(
    cluster: ClusterConfig, metadata: MetadataConfig, *, follows: bool = False
) -> EventTopic:
    """Open the metadata topic; sends nothing to the cluster yet.

    With `follows`, a process reads it for its whole life, so an idle topic causes few fetches.
    Other readers read to the topic's end, and need its records soon.
    """
    settings = TopicSettings(
        name=metadata.topic_name,
        partition_count=metadata.num_partitions,
        replication_factor=metadata.replication_factor,
    )
    timeouts = KafkaTimeouts(
        fetch_wait_ms=_FOLLOWER_FETCH_WAIT_MS if follows else _READER_FETCH_WAIT_MS,
        produce_ms=metadata.producer_request_timeout_ms,
        delivery_ms=metadata.producer_delivery_timeout_ms,
    )
    return KafkaTopic(client_properties(cluster), settings, timeouts)


def own_topics(metadata: MetadataConfig, manager: ManagerConfig) -> frozenset[str]:
    """Return the metadata topic and the dead-letter topic, which are never tiered."""
    return frozenset({metadata.topic_name, manager.delete_dead_letter_topic})
