"""Defines ListOffsets (KIP-79, KIP-320, KIP-405), which finds offsets by timestamp."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartition(Message):
    """Requests an offset; `timestamp` is in ms, or a special value.

    -1 latest, -2 earliest, -3 max timestamp, -4 earliest local, -5 latest tiered, -6 earliest
    pending upload.
    """

    partition_index: int = wire(WireType.INT32, "0+")
    current_leader_epoch: int = wire(WireType.INT32, "4+", default=-1)
    timestamp: int = wire(WireType.INT64, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopic(Message):
    """Represents partitions of one topic."""

    name: str = wire(WireType.STRING, "0+")
    partitions: tuple[ListOffsetsPartition, ...] = wire(ArrayOf(ListOffsetsPartition), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest(Message):
    """Requests offsets.

    `replica_id` -1 means a client. If `isolation_level` is 1, "latest" is the last stable offset.
    """

    replica_id: int = wire(WireType.INT32, "0+")
    isolation_level: int = wire(WireType.INT8, "2+")
    topics: tuple[ListOffsetsTopic, ...] = wire(ArrayOf(ListOffsetsTopic), "0+")
    timeout_ms: int = wire(WireType.INT32, "10+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartitionResponse(Message):
    """Represents the requested offset; -1 if there is none."""

    partition_index: int = wire(WireType.INT32, "0+")
    error_code: int = wire(WireType.INT16, "0+")
    timestamp: int = wire(WireType.INT64, "1+", default=-1)
    offset: int = wire(WireType.INT64, "1+", default=-1)
    leader_epoch: int = wire(WireType.INT32, "4+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopicResponse(Message):
    """Represents partitions of one topic."""

    name: str = wire(WireType.STRING, "0+")
    partitions: tuple[ListOffsetsPartitionResponse, ...] = wire(
        ArrayOf(ListOffsetsPartitionResponse), "0+"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponse(Message):
    """Represents a result for each requested partition."""

    throttle_time_ms: int = wire(WireType.INT32, "2+")
    topics: tuple[ListOffsetsTopicResponse, ...] = wire(ArrayOf(ListOffsetsTopicResponse), "0+")


LIST_OFFSETS = Api(
    key=2,
    name="ListOffsets",
    versions=Versions.parse("1-11"),
    flexible=Versions.parse("6+"),
    request=ListOffsetsRequest,
    response=ListOffsetsResponse,
)
