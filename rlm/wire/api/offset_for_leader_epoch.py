"""Defines OffsetForLeaderEpoch (KIP-101, KIP-320), which finds where a leader epoch ends."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderPartition(Message):
    """Requests the end offset of `leader_epoch`."""

    partition: int = wire(WireType.INT32, "0+")
    current_leader_epoch: int = wire(WireType.INT32, "2+", default=-1)
    leader_epoch: int = wire(WireType.INT32, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopic(Message):
    """Represents partitions of one topic."""

    topic: str = wire(WireType.STRING, "0+")
    partitions: tuple[OffsetForLeaderPartition, ...] = wire(ArrayOf(OffsetForLeaderPartition), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest(Message):
    """Requests end offsets of leader epochs; `replica_id` -1 means a client."""

    replica_id: int = wire(WireType.INT32, "3+", default=-2)
    topics: tuple[OffsetForLeaderTopic, ...] = wire(ArrayOf(OffsetForLeaderTopic), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndOffset(Message):
    """Represents the largest epoch up to the requested epoch, and its end offset."""

    error_code: int = wire(WireType.INT16, "0+")
    partition: int = wire(WireType.INT32, "0+")
    leader_epoch: int = wire(WireType.INT32, "1+", default=-1)
    end_offset: int = wire(WireType.INT64, "0+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopicResult(Message):
    """Represents partitions of one topic."""

    topic: str = wire(WireType.STRING, "0+")
    partitions: tuple[EpochEndOffset, ...] = wire(ArrayOf(EpochEndOffset), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponse(Message):
    """Represents a result for each requested partition."""

    throttle_time_ms: int = wire(WireType.INT32, "2+")
    topics: tuple[OffsetForLeaderTopicResult, ...] = wire(ArrayOf(OffsetForLeaderTopicResult), "0+")


OFFSET_FOR_LEADER_EPOCH = Api(
    key=23,
    name="OffsetForLeaderEpoch",
    versions=Versions.parse("2-4"),
    flexible=Versions.parse("4+"),
    request=OffsetForLeaderEpochRequest,
    response=OffsetForLeaderEpochResponse,
)
