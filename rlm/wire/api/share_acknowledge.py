"""ShareAcknowledge (KIP-932): what became of acquired records."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgementBatch(Message):
    """What became of a range of offsets; one type for all, or one for each."""

    first_offset: int = wire(WireType.INT64, "0+")
    last_offset: int = wire(WireType.INT64, "0+")
    acknowledge_types: tuple[int, ...] = wire(ArrayOf(WireType.INT8), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgePartition(Message):
    """Acknowledgements of one partition."""

    partition_index: int = wire(WireType.INT32, "0+")
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = wire(
        ArrayOf(AcknowledgementBatch), "0+"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeTopic(Message):
    """Partitions of one topic."""

    topic_id: UUID = wire(WireType.UUID, "0+")
    partitions: tuple[AcknowledgePartition, ...] = wire(ArrayOf(AcknowledgePartition), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAcknowledgeRequest(Message):
    """Acknowledges within the member's share session."""

    group_id: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    member_id: str | None = wire(WireType.STRING, "0+", nullable="0+")
    share_session_epoch: int = wire(WireType.INT32, "0+")
    is_renew_ack: bool = wire(WireType.BOOLEAN, "2+")
    topics: tuple[AcknowledgeTopic, ...] = wire(ArrayOf(AcknowledgeTopic), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIdAndEpoch(Message):
    """The leader that the asked broker knows of."""

    leader_id: int = wire(WireType.INT32, "0+")
    leader_epoch: int = wire(WireType.INT32, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData(Message):
    """What came of the acknowledgements of one partition."""

    partition_index: int = wire(WireType.INT32, "0+")
    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAcknowledgeTopicResponse(Message):
    """Partitions of one topic."""

    topic_id: UUID = wire(WireType.UUID, "0+")
    partitions: tuple[PartitionData, ...] = wire(ArrayOf(PartitionData), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint(Message):
    """Where a leader hint leads."""

    node_id: int = wire(WireType.INT32, "0+")
    host: str = wire(WireType.STRING, "0+")
    port: int = wire(WireType.INT32, "0+")
    rack: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAcknowledgeResponse(Message):
    """An answer for each partition acknowledged."""

    throttle_time_ms: int = wire(WireType.INT32, "0+")
    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = wire(WireType.INT32, "2+")
    responses: tuple[ShareAcknowledgeTopicResponse, ...] = wire(
        ArrayOf(ShareAcknowledgeTopicResponse), "0+"
    )
    node_endpoints: tuple[NodeEndpoint, ...] = wire(ArrayOf(NodeEndpoint), "0+")


SHARE_ACKNOWLEDGE = Api(
    key=79,
    name="ShareAcknowledge",
    versions=Versions.parse("1-2"),
    flexible=Versions.parse("0+"),
    request=ShareAcknowledgeRequest,
    response=ShareAcknowledgeResponse,
)
