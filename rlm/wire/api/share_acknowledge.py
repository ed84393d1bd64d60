"""Defines ShareAcknowledge (KIP-932), which acknowledges acquired records."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlm.wire.api.share_parts import AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint
from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgePartition(Message):
    """Represents acknowledgements of one partition."""

    partition_index: int = wire(WireType.INT32, "0+")
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = wire(
        ArrayOf(AcknowledgementBatch), "0+"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeTopic(Message):
    """Represents partitions of one topic."""

    topic_id: UUID = wire(WireType.UUID, "0+")
    partitions: tuple[AcknowledgePartition, ...] = wire(ArrayOf(AcknowledgePartition), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAcknowledgeRequest(Message):
    """Acknowledges records within the member's share session."""

    group_id: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    member_id: str | None = wire(WireType.STRING, "0+", nullable="0+")
    share_session_epoch: int = wire(WireType.INT32, "0+")
    is_renew_ack: bool = wire(WireType.BOOLEAN, "2+")
    topics: tuple[AcknowledgeTopic, ...] = wire(ArrayOf(AcknowledgeTopic), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData(Message):
    """Represents the result of one partition's acknowledgements."""

    partition_index: int = wire(WireType.INT32, "0+")
    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAcknowledgeTopicResponse(Message):
    """Represents partitions of one topic."""

    topic_id: UUID = wire(WireType.UUID, "0+")
    partitions: tuple[PartitionData, ...] = wire(ArrayOf(PartitionData), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareAcknowledgeResponse(Message):
    """Represents a result for each acknowledged partition."""

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
