"""OffsetForLeaderEpoch (KIP-101, KIP-320): where a leader epoch ends."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderPartition(Message):
    """Requests the end of `leader_epoch`."""

    partition: int = wire(WireType.INT32, "0+")
    current_leader_epoch: int = wire(WireType.INT32, "2+", default=-1)
    leader_epoch: int = wire(WireType.INT32, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopic(Message):
    """Partitions of one topic."""

    topic: str = wire(WireType.STRING, "0+")
    partitions: tuple[OffsetForLeaderPartition, ...] = wire(ArrayOf(OffsetForLeaderPartition), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochRequest(Message):
    """`replica_id` -1 is a client."""

    replica_id: int = wire(WireType.INT32, "3+", default=-2)
    topics: tuple[OffsetForLeaderTopic, ...] = wire(ArrayOf(OffsetForLeaderTopic), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndOffset(Message):
    """The largest epoch not above the requested one, and the offset at its end."""

    error_code: int = wire(WireType.INT16, "0+")
    partition: int = wire(WireType.INT32, "0+")
    leader_epoch: int = wire(WireType.INT32, "1+", default=-1)
    end_offset: int = wire(WireType.INT64, "0+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderTopicResult(Message):
    """Partitions of one topic."""

    topic: str = wire(WireType.STRING, "0+")
    partitions: tuple[EpochEndOffset, ...] = wire(ArrayOf(EpochEndOffset), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetForLeaderEpochResponse(Message):
    """A result for each requested partition."""

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
