"""Opens a process's access to the cluster and the metadata topic, from its configuration.

Opening sends nothing to the cluster. Invalid settings raise InvalidConfigError at once.
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

# Covers the wait for the broker's first response, too: a frozen host delays requests by this time.
_CONNECT_TIMEOUT_MS = 5_000
_REQUEST_TIMEOUT_MS = 30_000
# A follower's fetch waits as long as a Kafka consumer's does by default. Other readers wait for a
# shorter time, so that a command reads an empty topic quickly.
_FOLLOWER_FETCH_WAIT_MS = 500
_READER_FETCH_WAIT_MS = 100


def open_bootstrap(
    cluster: ClusterConfig, clock: Clock, *, timeout_ms: int = _REQUEST_TIMEOUT_MS
) -> Bootstrap:
    """Open access to the brokers of the cluster through its bootstrap servers.

    `timeout_ms` bounds each request and each message of a login. It also bounds the total time of
    the attempts to connect to all bootstrap servers.
    """
    servers = [(server.host, server.port) for server in cluster.bootstrap_servers]
    settings = ConnectionSettings(
        security=security_of(cluster.client.librdkafka()),
        connect_timeout_ms=max(1, min(_CONNECT_TIMEOUT_MS, timeout_ms // len(servers))),
        request_timeout_ms=timeout_ms,
    )
    return Bootstrap(servers, Connector(settings, clock))


def client_properties(config: ClusterConfig) -> Mapping[str, str]:
    """Return librdkafka's configuration for the cluster, with its secrets in clear text."""
    return {**config.client.librdkafka(), "bootstrap.servers": config.bootstrap_text}


def open_metadata_topic(
    cluster: ClusterConfig, metadata: MetadataConfig, *, follows: bool = False
) -> EventTopic:
    """Open the metadata topic; send nothing to the cluster yet.

    Set `follows` for a process that follows the topic until it stops: fetches then wait longer, so
    an idle topic causes few fetches. Other readers read once to the topic's end.
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
