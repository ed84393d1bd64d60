"""Defines the requests about topics for enabling and disabling tiering.

Unlike rlm.broker.spi.Broker, TopicAdmin sends requests to any broker. `on_replicas` asks each
broker with a replica, because only a broker's own response shows the settings that it applies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlm.broker.bootstrap import Bootstrap
from rlm.broker.cluster import ClusterView, TopicView
from rlm.broker.list_offsets import fetch_first_offsets_since, fetch_partition_offsets
from rlm.broker.topics.config_requests import (
    alter_topic_configs,
    read_on_replicas,
    read_topic_configs,
)
from rlm.broker.topics.default_retention import DefaultRetention, read_default_retention
from rlm.facts.topic_configs import TopicConfigs
from rlm.wire.connection import Requester
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOnReplicas:
    """Represents a topic, and its settings on each replica's broker, by node id."""

    topic: TopicView
    configs: Mapping[int, TopicConfigs]

    @property
    def leader_id(self) -> int:
        """Return the first partition's leader; the lowest node id in `configs` if there is none."""
        leader_id = self.topic.partitions[0].leader_id
        if leader_id is None or leader_id not in self.configs:
            return min(self.configs)
        return leader_id

    @property
    def leader_configs(self) -> TopicConfigs:
        """Return the settings as the broker of `leader_id` has them."""
        return self.configs[self.leader_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpan:
    """Represents a log on its leader, and its first offset at or after a requested timestamp.

    `since_offset` is the high watermark if there is no such record.
    """

    local_start_offset: int
    high_watermark: int
    since_offset: int


class TopicAdmin(ABC):
    """Reads and changes topics of one cluster. Thread-safe; connection timeouts limit each call.

    Raises RetriableError if a required broker is unreachable, and NotFoundError if a requested
    topic or broker is unknown.
    """

    @abstractmethod
    def view(self, topics: Iterable[str] | None) -> ClusterView:
        """Return one broker's view of the cluster with `topics`, or with all topics if None."""

    @abstractmethod
    def on_replicas(self, topic: str) -> TopicOnReplicas:
        """Read a topic's settings from the broker of every replica."""

    @abstractmethod
    def configs_at(
        self, node_id: int, topics: Iterable[str]
    ) -> Mapping[str, TopicConfigs | TieredStorageError]:
        """Read one broker's settings of `topics`; return the error of each topic that fails."""

    @abstractmethod
    def default_retention(self, node_id: int) -> DefaultRetention:
        """Read the retention that one broker applies to topics without overrides."""

    @abstractmethod
    def alter(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Set the topic's own values; None deletes a value. Atomic and idempotent."""

    @abstractmethod
    def log_spans(self, topic: TopicView, since_ms: int) -> Mapping[TopicIdPartition, LogSpan]:
        """Fetch the span of every partition's log from its leader."""


class ClusterTopicAdmin(TopicAdmin):
    """Sends the requests to a cluster, over new connections for each call."""

    def __init__(self, bootstrap: Bootstrap) -> None:
        self._bootstrap = bootstrap

    def view(self, topics: Iterable[str] | None) -> ClusterView:
        return self._bootstrap.view(topics)

    def on_replicas(self, topic: str) -> TopicOnReplicas:
        view = self._bootstrap.view((topic,))
        found = view.topic(topic)
        if not found.replica_ids():
            raise RetriableError(
                "cannot read the topic's settings: the topic has no replicas yet", topic=topic
            )
        configs = read_on_replicas(self._bootstrap, view, topic)
        return TopicOnReplicas(topic=found, configs=configs)

    def configs_at(
        self, node_id: int, topics: Iterable[str]
    ) -> Mapping[str, TopicConfigs | TieredStorageError]:
        with self._bootstrap.at(self._bootstrap.view(()).broker(node_id)) as broker:
            return read_topic_configs(broker, topics)

    def default_retention(self, node_id: int) -> DefaultRetention:
        with self._bootstrap.at(self._bootstrap.view(()).broker(node_id)) as broker:
            return read_default_retention(broker, node_id)

    def alter(self, topic: str, changes: Mapping[str, str | None]) -> None:
        with self._bootstrap.any_broker() as broker:
            alter_topic_configs(broker, topic, changes)

    def log_spans(self, topic: TopicView, since_ms: int) -> Mapping[TopicIdPartition, LogSpan]:
        view = self._bootstrap.view((topic.topic,))
        led = {node_id: view.led_by(node_id) for node_id in view.brokers}
        spans: dict[TopicIdPartition, LogSpan] = {}
        for node_id, epochs in led.items():
            if epochs:
                with self._bootstrap.at(view.broker(node_id)) as leader:
                    spans.update(_spans(leader, epochs, since_ms))
        expected = {
            TopicIdPartition(topic_id=topic.topic_id, topic=topic.topic, partition=each.partition)
            for each in topic.partitions
        }
        if spans.keys() != expected:
            raise RetriableError(
                "cannot fetch the topic's offsets: a partition has no live leader, or the topic "
                "changed",
                topic=topic.topic,
            )
        return spans


def _spans(
    leader: Requester, leader_epochs: Mapping[TopicIdPartition, int], since_ms: int
) -> Mapping[TopicIdPartition, LogSpan]:
    ends = fetch_partition_offsets(leader, leader_epochs)
    for error in ends.failed.values():
        raise RetriableError("the leader cannot return its offsets now", reason=error) from error
    since = fetch_first_offsets_since(leader, leader_epochs, since_ms)
    for error in since.failed.values():
        raise RetriableError("the leader cannot return its offsets now", reason=error) from error
    spans: dict[TopicIdPartition, LogSpan] = {}
    for partition, offsets in ends.succeeded.items():
        first = since.succeeded[partition]
        spans[partition] = LogSpan(
            local_start_offset=offsets.log_start_offset,
            high_watermark=offsets.high_watermark,
            since_offset=offsets.high_watermark if first is None else first,
        )
    return spans
