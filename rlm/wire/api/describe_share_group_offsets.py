"""Defines DescribeShareGroupOffsets (KIP-932, KIP-1226), which reads share groups' offsets."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequestTopic(Message):
    """Represents the requested partitions of a topic."""

    topic_name: str = wire(WireType.STRING, "0+")
    partitions: tuple[int, ...] = wire(ArrayOf(WireType.INT32), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequestGroup(Message):
    """Requests a group's topics; if `topics` is None, all that the user may describe."""

    group_id: str = wire(WireType.STRING, "0+")
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None = wire(
        ArrayOf(DescribeShareGroupOffsetsRequestTopic), "0+", nullable="0+"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroupOffsetsRequest(Message):
    """Requests offsets from the groups' coordinator."""

    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...] = wire(
        ArrayOf(DescribeShareGroupOffsetsRequestGroup), "0+"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponsePartition(Message):
    """Represents the first offset that the group still needs; -1 if none is recorded."""

    partition_index: int = wire(WireType.INT32, "0+")
    start_offset: int = wire(WireType.INT64, "0+")
    leader_epoch: int = wire(WireType.INT32, "0+")
    lag: int = wire(WireType.INT64, "1+", default=-1)
    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponseTopic(Message):
    """Represents a topic of a group."""

    topic_name: str = wire(WireType.STRING, "0+")
    topic_id: UUID = wire(WireType.UUID, "0+")
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...] = wire(
        ArrayOf(DescribeShareGroupOffsetsResponsePartition), "0+"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponseGroup(Message):
    """Represents a group, or the error that prevents its description."""

    group_id: str = wire(WireType.STRING, "0+")
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...] = wire(
        ArrayOf(DescribeShareGroupOffsetsResponseTopic), "0+"
    )
    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareGroupOffsetsResponse(Message):
    """Represents a result for each group."""

    throttle_time_ms: int = wire(WireType.INT32, "0+")
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...] = wire(
        ArrayOf(DescribeShareGroupOffsetsResponseGroup), "0+"
    )


DESCRIBE_SHARE_GROUP_OFFSETS = Api(
    key=90,
    name="DescribeShareGroupOffsets",
    versions=Versions.parse("0-1"),
    flexible=Versions.parse("0+"),
    request=DescribeShareGroupOffsetsRequest,
    response=DescribeShareGroupOffsetsResponse,
)
