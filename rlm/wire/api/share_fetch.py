"""Defines ShareFetch (KIP-932), which acquires records for a member of a share group."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlm.wire.api.share_parts import AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint
from rlm.wire.schema import Api, ArrayOf, Message, Records, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPartition(Message):
    """Requests records of a partition, and acknowledges earlier ones."""

    partition_index: int = wire(WireType.INT32, "0+")
    partition_max_bytes: int = wire(WireType.INT32, "0")
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = wire(
        ArrayOf(AcknowledgementBatch), "0+"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTopic(Message):
    """Represents partitions of one topic."""

    topic_id: UUID = wire(WireType.UUID, "0+")
    partitions: tuple[FetchPartition, ...] = wire(ArrayOf(FetchPartition), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenTopic(Message):
    """Represents partitions that leave the share session."""

    topic_id: UUID = wire(WireType.UUID, "0+")
    partitions: tuple[int, ...] = wire(ArrayOf(WireType.INT32), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareFetchRequest(Message):
    """Fetches and acknowledges within the member's share session."""

    group_id: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    member_id: str | None = wire(WireType.STRING, "0+", nullable="0+")
    share_session_epoch: int = wire(WireType.INT32, "0+")
    max_wait_ms: int = wire(WireType.INT32, "0+")
    min_bytes: int = wire(WireType.INT32, "0+")
    max_bytes: int = wire(WireType.INT32, "0+", default=0x7FFFFFFF)
    max_records: int = wire(WireType.INT32, "1+")
    batch_size: int = wire(WireType.INT32, "1+")
    share_acquire_mode: int = wire(WireType.INT8, "2+")
    is_renew_ack: bool = wire(WireType.BOOLEAN, "2+")
    topics: tuple[FetchTopic, ...] = wire(ArrayOf(FetchTopic), "0+")
    forgotten_topics_data: tuple[ForgottenTopic, ...] = wire(ArrayOf(ForgottenTopic), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquiredRecords(Message):
    """Represents a range of acquired offsets; `last_offset` is inclusive."""

    first_offset: int = wire(WireType.INT64, "0+")
    last_offset: int = wire(WireType.INT64, "0+")
    delivery_count: int = wire(WireType.INT16, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData(Message):
    """Represents the acquired records, or the error."""

    partition_index: int = wire(WireType.INT32, "0+")
    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    acknowledge_error_code: int = wire(WireType.INT16, "0+")
    acknowledge_error_message: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "0+")
    records: Records | None = wire(WireType.RECORDS, "0+", nullable="0")
    acquired_records: tuple[AcquiredRecords, ...] = wire(ArrayOf(AcquiredRecords), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareFetchableTopicResponse(Message):
    """Represents partitions of one topic."""

    topic_id: UUID = wire(WireType.UUID, "0+")
    partitions: tuple[PartitionData, ...] = wire(ArrayOf(PartitionData), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareFetchResponse(Message):
    """Represents a result for each requested partition."""

    throttle_time_ms: int = wire(WireType.INT32, "0+")
    error_code: int = wire(WireType.INT16, "0+")
    error_message: str | None = wire(WireType.STRING, "0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = wire(WireType.INT32, "1+")
    responses: tuple[ShareFetchableTopicResponse, ...] = wire(
        ArrayOf(ShareFetchableTopicResponse), "0+"
    )
    node_endpoints: tuple[NodeEndpoint, ...] = wire(ArrayOf(NodeEndpoint), "0+")


SHARE_FETCH = Api(
    key=78,
    name="ShareFetch",
    versions=Versions.parse("1-2"),
    flexible=Versions.parse("0+"),
    request=ShareFetchRequest,
    response=ShareFetchResponse,
)
