"""Defines Produce (KIP-98, KIP-467, KIP-516, KIP-951), which appends record batches."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlm.wire.schema import Api, ArrayOf, Message, Records, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProduceData(Message):
    """Represents batches for one partition."""

    index: int = wire(WireType.INT32, "0+")
    records: Records | None = wire(WireType.RECORDS, "0+", nullable="0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduceData(Message):
    """Represents partitions of one topic, identified by name; from version 13, by id."""

    name: str = wire(WireType.STRING, "0-12")
    topic_id: UUID = wire(WireType.UUID, "13+")
    partition_data: tuple[PartitionProduceData, ...] = wire(ArrayOf(PartitionProduceData), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequest(Message):
    """Requests an append; `acks` is 0 for no response, 1 for the leader, -1 for the ISR."""

    transactional_id: str | None = wire(WireType.STRING, "3+", nullable="3+", default=None)
    acks: int = wire(WireType.INT16, "0+")
    timeout_ms: int = wire(WireType.INT32, "0+")
    topic_data: tuple[TopicProduceData, ...] = wire(ArrayOf(TopicProduceData), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIndexAndErrorMessage(Message):
    """Represents a record that made the broker refuse its batch, and the reason."""

    batch_index: int = wire(WireType.INT32, "8+")
    batch_index_error_message: str | None = wire(WireType.STRING, "8+", nullable="8+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIdAndEpoch(Message):
    """Represents the leader, if the responding broker knows that another broker leads (KIP-951)."""

    leader_id: int = wire(WireType.INT32, "10+", default=-1)
    leader_epoch: int = wire(WireType.INT32, "10+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProduceResponse(Message):
    """Represents the batches' base offset in the log, or the error."""

    index: int = wire(WireType.INT32, "0+")
    error_code: int = wire(WireType.INT16, "0+")
    base_offset: int = wire(WireType.INT64, "0+")
    log_append_time_ms: int = wire(WireType.INT64, "2+", default=-1)
    log_start_offset: int = wire(WireType.INT64, "5+", default=-1)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = wire(
        ArrayOf(BatchIndexAndErrorMessage), "8+"
    )
    error_message: str | None = wire(WireType.STRING, "8+", nullable="8+", default=None)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "10+", tag=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduceResponse(Message):
    """Represents partitions of one topic, identified by name; from version 13, by id."""

    name: str = wire(WireType.STRING, "0-12")
    topic_id: UUID = wire(WireType.UUID, "13+")
    partition_responses: tuple[PartitionProduceResponse, ...] = wire(
        ArrayOf(PartitionProduceResponse), "0+"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint(Message):
    """Represents the address of a leader in a hint."""

    node_id: int = wire(WireType.INT32, "10+")
    host: str = wire(WireType.STRING, "10+")
    port: int = wire(WireType.INT32, "10+")
    rack: str | None = wire(WireType.STRING, "10+", nullable="10+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponse(Message):
    """Represents a result for each partition of the request."""

    responses: tuple[TopicProduceResponse, ...] = wire(ArrayOf(TopicProduceResponse), "0+")
    throttle_time_ms: int = wire(WireType.INT32, "1+")
    node_endpoints: tuple[NodeEndpoint, ...] = wire(ArrayOf(NodeEndpoint), "10+", tag=0)


PRODUCE = Api(
    key=0,
    name="Produce",
    versions=Versions.parse("3-13"),
    flexible=Versions.parse("9+"),
    request=ProduceRequest,
    response=ProduceResponse,
)
