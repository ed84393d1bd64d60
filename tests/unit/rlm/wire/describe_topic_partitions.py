"""DescribeTopicPartitions (KIP-966): topics page by page, with eligible leader replicas."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRequest(Message):
    """A topic by name."""

    name: str = wire(WireType.STRING, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor(Message):
    """Where the next page begins."""

    topic_name: str = wire(WireType.STRING, "0+")
    partition_index: int = wire(WireType.INT32, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsRequest(Message):
    """An empty `topics` requests all; `cursor` is None for the first page."""

    topics: tuple[TopicRequest, ...] = wire(ArrayOf(TopicRequest), "0+")
    response_partition_limit: int = wire(WireType.INT32, "0+", default=2000)
    cursor: Cursor | None = wire(Cursor, "0+", nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponsePartition(Message):
    """A partition; `leader_id` is -1 where there is no leader."""

    error_code: int = wire(WireType.INT16, "0+")
    partition_index: int = wire(WireType.INT32, "0+")
    leader_id: int = wire(WireType.INT32, "0+")
    leader_epoch: int = wire(WireType.INT32, "0+", default=-1)
    replica_nodes: tuple[int, ...] = wire(ArrayOf(WireType.INT32), "0+")
    isr_nodes: tuple[int, ...] = wire(ArrayOf(WireType.INT32), "0+")
    eligible_leader_replicas: tuple[int, ...] | None = wire(
        ArrayOf(WireType.INT32), "0+", nullable="0+", default=None
    )
    last_known_elr: tuple[int, ...] | None = wire(
        ArrayOf(WireType.INT32), "0+", nullable="0+", default=None
    )
    offline_replicas: tuple[int, ...] = wire(ArrayOf(WireType.INT32), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponseTopic(Message):
    """A topic, or the error for it."""

    error_code: int = wire(WireType.INT16, "0+")
    name: str | None = wire(WireType.STRING, "0+", nullable="0+")
    topic_id: UUID = wire(WireType.UUID, "0+")
    is_internal: bool = wire(WireType.BOOLEAN, "0+")
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = wire(
        ArrayOf(DescribeTopicPartitionsResponsePartition), "0+"
    )
    topic_authorized_operations: int = wire(WireType.INT32, "0+", default=-2147483648)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTopicPartitionsResponse(Message):
    """One page; `next_cursor` is None in the last one."""

    throttle_time_ms: int = wire(WireType.INT32, "0+")
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = wire(
        ArrayOf(DescribeTopicPartitionsResponseTopic), "0+"
    )
    next_cursor: Cursor | None = wire(Cursor, "0+", nullable="0+", default=None)


DESCRIBE_TOPIC_PARTITIONS = Api(
    key=75,
    name="DescribeTopicPartitions",
    versions=Versions.parse("0"),
    flexible=Versions.parse("0+"),
    request=DescribeTopicPartitionsRequest,
    response=DescribeTopicPartitionsResponse,
)
