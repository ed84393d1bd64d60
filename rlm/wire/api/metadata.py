"""Defines Metadata, which lists brokers, topic ids (KIP-516) and leader epochs (KIP-320)."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequestTopic(Message):
    """Represents a topic, by name or, from version 10, by id."""

    topic_id: UUID = wire(WireType.UUID, "10+")
    name: str | None = wire(WireType.STRING, "0+", nullable="10+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest(Message):
    """Requests topics: all if `topics` is None, none if it is empty (in version 0: all)."""

    topics: tuple[MetadataRequestTopic, ...] | None = wire(
        ArrayOf(MetadataRequestTopic), "0+", nullable="1+"
    )
    allow_auto_topic_creation: bool = wire(WireType.BOOLEAN, "4+", default=True)
    include_cluster_authorized_operations: bool = wire(WireType.BOOLEAN, "8-10")
    include_topic_authorized_operations: bool = wire(WireType.BOOLEAN, "8+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponseBroker(Message):
    """Represents a live broker and its address on the listener that received the request."""

    node_id: int = wire(WireType.INT32, "0+")
    host: str = wire(WireType.STRING, "0+")
    port: int = wire(WireType.INT32, "0+")
    rack: str | None = wire(WireType.STRING, "1+", nullable="1+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponsePartition(Message):
    """Represents a partition; `leader_id` is -1 if there is no leader."""

    error_code: int = wire(WireType.INT16, "0+")
    partition_index: int = wire(WireType.INT32, "0+")
    leader_id: int = wire(WireType.INT32, "0+")
    leader_epoch: int = wire(WireType.INT32, "7+", default=-1)
    replica_nodes: tuple[int, ...] = wire(ArrayOf(WireType.INT32), "0+")
    isr_nodes: tuple[int, ...] = wire(ArrayOf(WireType.INT32), "0+")
    offline_replicas: tuple[int, ...] = wire(ArrayOf(WireType.INT32), "5+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponseTopic(Message):
    """Represents a topic, or the error that prevents its description."""

    error_code: int = wire(WireType.INT16, "0+")
    name: str | None = wire(WireType.STRING, "0+", nullable="12+")
    topic_id: UUID = wire(WireType.UUID, "10+")
    is_internal: bool = wire(WireType.BOOLEAN, "1+")
    partitions: tuple[MetadataResponsePartition, ...] = wire(
        ArrayOf(MetadataResponsePartition), "0+"
    )
    topic_authorized_operations: int = wire(WireType.INT32, "8+", default=-2147483648)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse(Message):
    """Represents the cluster as the responding broker sees it now."""

    throttle_time_ms: int = wire(WireType.INT32, "3+")
    brokers: tuple[MetadataResponseBroker, ...] = wire(ArrayOf(MetadataResponseBroker), "0+")
    cluster_id: str | None = wire(WireType.STRING, "2+", nullable="2+", default=None)
    controller_id: int = wire(WireType.INT32, "1+", default=-1)
    topics: tuple[MetadataResponseTopic, ...] = wire(ArrayOf(MetadataResponseTopic), "0+")
    cluster_authorized_operations: int = wire(WireType.INT32, "8-10", default=-2147483648)
    error_code: int = wire(WireType.INT16, "13+")


METADATA = Api(
    key=3,
    name="Metadata",
    versions=Versions.parse("0-13"),
    flexible=Versions.parse("9+"),
    request=MetadataRequest,
    response=MetadataResponse,
)
