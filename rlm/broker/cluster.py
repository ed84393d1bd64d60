"""Fetches one broker's view of the cluster by Metadata: brokers, topics, leaders and epochs.

The broker may lag, so a caller confirms the leader epoch with the leader before it acts. Source:
KIP-320 (epochs), KIP-516 (topic ids).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from rlm.broker.errors import error_of
from rlm.wire.api.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rlm.wire.connection import Requester
from rlm.wire.error_codes import ErrorCode
from rlm.wire.schema import NULL_ID
from rsm.segment.errors import CorruptError, NotFoundError, UnsupportedError
from rsm.segment.ids import TopicIdPartition

_FIRST_VERSION_WITH_TOPIC_IDS = 10
_ADVICE_WITHOUT_ID = "Set inter.broker.protocol.version to 2.8 or later on all brokers"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAddress:
    """Represents a live broker, with its address for the listener that received the request."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReplicas:
    """Represents a partition's leader and replicas by node id; `leader_id` is None if unknown."""

    partition: int
    leader_id: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """Represents a topic; `partitions` are in ascending order."""

    topic: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionReplicas, ...]

    def replica_ids(self) -> frozenset[int]:
        """Return the brokers that have a replica of any partition."""
        return frozenset(node_id for each in self.partitions for node_id in each.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Represents the Metadata response of one broker.

    `refused` maps each topic that the broker did not describe to the error code. `without_id` are
    topics that the broker described without an id: with ZooKeeper and an
    `inter.broker.protocol.version` below 2.8, topics have no ids.
    """

    cluster_id: str
    controller_id: int | None
    brokers: Mapping[int, BrokerAddress]
    topics: Mapping[str, TopicView]
    refused: Mapping[str, int]
    without_id: frozenset[str] = frozenset()

    def topic(self, name: str) -> TopicView:
        """Return the topic.

        Raises NotFoundError if the view lacks the topic, UnsupportedError if it has no id, or the
        error that the broker returned for it.
        """
        found = self.topics.get(name)
        if found is not None:
            return found
        if name in self.without_id:
            raise UnsupportedError("the topic has no id", topic=name, advice=_ADVICE_WITHOUT_ID)
        code = self.refused.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        raise error_of(code, topic=name)

    def broker(self, node_id: int) -> BrokerAddress:
        """Return the live broker with that id. Raises NotFoundError if there is none."""
        found = self.brokers.get(node_id)
        if found is None:
            raise NotFoundError(
                "cannot find the broker: the cluster has no live broker of this id", node_id=node_id
            )
        return found

    def led_by(self, node_id: int) -> Mapping[TopicIdPartition, int]:
        """Return the partitions that a broker leads, each with its leader epoch."""
        return {
            TopicIdPartition(
                topic_id=topic.topic_id, topic=topic.topic, partition=each.partition
            ): each.leader_epoch
            for topic in self.topics.values()
            for each in topic.partitions
            if each.leader_id == node_id
        }


def fetch_cluster_view(broker: Requester, topics: Iterable[str] | None = None) -> ClusterView:
    """Fetch a view with `topics`, or with all topics if None; never create topics.

    Raises UnsupportedError if the broker is older than Kafka 2.8, which added topic ids. Raises
    CorruptError if the response lacks the cluster id or a topic's name. Also raises the error in
    the response, and the errors of `Requester.request`.
    """
    asked = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in topics)
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    response = broker.request(METADATA, request, at_least=_FIRST_VERSION_WITH_TOPIC_IDS)
    return _view_of(response)


def _view_of(response: MetadataResponse) -> ClusterView:
    if response.error_code != ErrorCode.NONE:
        raise error_of(response.error_code)
    if response.cluster_id is None:
        raise CorruptError("cannot read the cluster's metadata: the response lacks the cluster id")
    described = [each for each in response.topics if each.error_code == ErrorCode.NONE]
    without_id = [each.name for each in described if each.topic_id == NULL_ID]
    return ClusterView(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id if response.controller_id >= 0 else None,
        brokers={
            each.node_id: BrokerAddress(
                node_id=each.node_id, host=each.host, port=each.port, rack=each.rack
            )
            for each in response.brokers
        },
        topics={
            topic.topic: topic for topic in map(_topic_of, described) if topic.topic_id != NULL_ID
        },
        refused={
            each.name: each.error_code
            for each in response.topics
            if each.error_code != ErrorCode.NONE and each.name is not None
        },
        without_id=frozenset(name for name in without_id if name is not None),
    )


def _topic_of(row: MetadataResponseTopic) -> TopicView:
    if row.name is None:
        raise CorruptError(
            "cannot read the cluster's metadata: a topic has no name", topic_id=row.topic_id
        )
    partitions = sorted(map(_partition_of, row.partitions), key=lambda each: each.partition)
    return TopicView(
        topic=row.name,
        topic_id=row.topic_id,
        is_internal=row.is_internal,
        partitions=tuple(partitions),
    )


def _partition_of(row: MetadataResponsePartition) -> PartitionReplicas:
    # The row's error code is ignored: it only repeats that the leader or a replica is missing.
    return PartitionReplicas(
        partition=row.partition_index,
        leader_id=row.leader_id if row.leader_id >= 0 else None,
        leader_epoch=row.leader_epoch,
        replicas=row.replica_nodes,
        isr=row.isr_nodes,
    )
