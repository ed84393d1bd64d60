"""Defines Fetch (KIP-74, KIP-98, KIP-227, KIP-320, KIP-392, KIP-516, KIP-951).

Fetch reads record batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from rlm.wire.schema import Api, ArrayOf, Message, Records, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState(Message):
    """Represents the identity of a follower (KIP-903); a client sends the defaults."""

    replica_id: int = wire(WireType.INT32, "15+", default=-1)
    replica_epoch: int = wire(WireType.INT64, "15+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPartition(Message):
    """Requests batches, from the batch that contains `fetch_offset`."""

    partition: int = wire(WireType.INT32, "0+")
    current_leader_epoch: int = wire(WireType.INT32, "9+", default=-1)
    fetch_offset: int = wire(WireType.INT64, "0+")
    last_fetched_epoch: int = wire(WireType.INT32, "12+", default=-1)
    log_start_offset: int = wire(WireType.INT64, "5+", default=-1)
    partition_max_bytes: int = wire(WireType.INT32, "0+")
    replica_directory_id: UUID = wire(WireType.UUID, "17+", tag=0)
    high_watermark: int = wire(WireType.INT64, "18+", tag=1, default=9223372036854775807)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTopic(Message):
    """Represents partitions of one topic, identified by name; from version 13, by id."""

    topic: str = wire(WireType.STRING, "0-12")
    topic_id: UUID = wire(WireType.UUID, "13+")
    partitions: tuple[FetchPartition, ...] = wire(ArrayOf(FetchPartition), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenTopic(Message):
    """Represents partitions that leave a fetch session."""

    topic: str = wire(WireType.STRING, "7-12")
    topic_id: UUID = wire(WireType.UUID, "13+")
    partitions: tuple[int, ...] = wire(ArrayOf(WireType.INT32), "7+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest(Message):
    """Requests record batches.

    `replica_id` -1 means a client. A session id of 0 with epoch -1 means no fetch session.
    """

    cluster_id: str | None = wire(WireType.STRING, "12+", nullable="12+", tag=0, default=None)
    replica_id: int = wire(WireType.INT32, "0-14", default=-1)
    replica_state: ReplicaState = wire(ReplicaState, "15+", tag=1)
    max_wait_ms: int = wire(WireType.INT32, "0+")
    min_bytes: int = wire(WireType.INT32, "0+")
    max_bytes: int = wire(WireType.INT32, "3+", default=0x7FFFFFFF)
    isolation_level: int = wire(WireType.INT8, "4+")
    session_id: int = wire(WireType.INT32, "7+")
    session_epoch: int = wire(WireType.INT32, "7+", default=-1)
    topics: tuple[FetchTopic, ...] = wire(ArrayOf(FetchTopic), "0+")
    forgotten_topics_data: tuple[ForgottenTopic, ...] = wire(ArrayOf(ForgottenTopic), "7+")
    rack_id: str = wire(WireType.STRING, "11+")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEndOffset(Message):
    """Represents where logs diverge: the largest epoch up to `last_fetched_epoch`, and its end."""

    epoch: int = wire(WireType.INT32, "12+", default=-1)
    end_offset: int = wire(WireType.INT64, "12+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIdAndEpoch(Message):
    """Represents the leader, if the responding broker knows that another broker leads (KIP-951)."""

    leader_id: int = wire(WireType.INT32, "12+", default=-1)
    leader_epoch: int = wire(WireType.INT32, "12+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotId(Message):
    """Represents the snapshot to load instead of records, for the cluster metadata topic only."""

    end_offset: int = wire(WireType.INT64, "0+", default=-1)
    epoch: int = wire(WireType.INT32, "0+", default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTransaction(Message):
    """Marks the producer's records as aborted, from `first_offset` to the abort marker."""

    producer_id: int = wire(WireType.INT64, "4+")
    first_offset: int = wire(WireType.INT64, "4+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData(Message):
    """Represents the records of a partition, or the error.

    `records` may begin below the requested offset, and may end within a batch other than the first.
    For most errors, the offsets are -1 and there are no records.
    """

    partition_index: int = wire(WireType.INT32, "0+")
    error_code: int = wire(WireType.INT16, "0+")
    high_watermark: int = wire(WireType.INT64, "0+")
    last_stable_offset: int = wire(WireType.INT64, "4+", default=-1)
    log_start_offset: int = wire(WireType.INT64, "5+", default=-1)
    diverging_epoch: EpochEndOffset = wire(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = wire(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = wire(SnapshotId, "12+", tag=2)
    aborted_transactions: tuple[AbortedTransaction, ...] | None = wire(
        ArrayOf(AbortedTransaction), "4+", nullable="4+"
    )
    preferred_read_replica: int = wire(WireType.INT32, "11+", default=-1)
    records: Records | None = wire(WireType.RECORDS, "0+", nullable="0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchableTopicResponse(Message):
    """Represents partitions of one topic, identified by name; from version 13, by id."""

    topic: str = wire(WireType.STRING, "0-12")
    topic_id: UUID = wire(WireType.UUID, "13+")
    partitions: tuple[PartitionData, ...] = wire(ArrayOf(PartitionData), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEndpoint(Message):
    """Represents the address of a leader in a hint."""

    node_id: int = wire(WireType.INT32, "16+")
    host: str = wire(WireType.STRING, "16+")
    port: int = wire(WireType.INT32, "16+")
    rack: str | None = wire(WireType.STRING, "16+", nullable="16+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse(Message):
    """Represents each requested partition's result; in a fetch session, only changed results.

    `session_id` 0 means no session.
    """

    throttle_time_ms: int = wire(WireType.INT32, "1+")
    error_code: int = wire(WireType.INT16, "7+")
    session_id: int = wire(WireType.INT32, "7+")
    responses: tuple[FetchableTopicResponse, ...] = wire(ArrayOf(FetchableTopicResponse), "0+")
    node_endpoints: tuple[NodeEndpoint, ...] = wire(ArrayOf(NodeEndpoint), "16+", tag=0)


FETCH = Api(
    key=1,
    name="Fetch",
    versions=Versions.parse("4-18"),
    flexible=Versions.parse("12+"),
    request=FetchRequest,
    response=FetchResponse,
)
