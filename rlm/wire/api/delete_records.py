"""Defines DeleteRecords (KIP-107), which moves log start offsets forward."""

from __future__ import annotations

from dataclasses import dataclass

from rlm.wire.schema import Api, ArrayOf, Message, Versions, WireType, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsPartition(Message):
    """Deletes the records below `offset`; -1 means the high watermark."""

    partition_index: int = wire(WireType.INT32, "0+")
    offset: int = wire(WireType.INT64, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsTopic(Message):
    """Represents partitions of one topic."""

    name: str = wire(WireType.STRING, "0+")
    partitions: tuple[DeleteRecordsPartition, ...] = wire(ArrayOf(DeleteRecordsPartition), "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsRequest(Message):
    """Requests deletions; contains no leader epoch.

    `timeout_ms` limits the leader's wait for its followers.
    """

    topics: tuple[DeleteRecordsTopic, ...] = wire(ArrayOf(DeleteRecordsTopic), "0+")
    timeout_ms: int = wire(WireType.INT32, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsPartitionResult(Message):
    """Represents one partition's result.

    `low_watermark` is the lowest log start of the live replicas; ignore it if there is an error.
    """

    partition_index: int = wire(WireType.INT32, "0+")
    low_watermark: int = wire(WireType.INT64, "0+")
    error_code: int = wire(WireType.INT16, "0+")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsTopicResult(Message):
    """Represents partitions of one topic."""

    name: str = wire(WireType.STRING, "0+")
    partitions: tuple[DeleteRecordsPartitionResult, ...] = wire(
        ArrayOf(DeleteRecordsPartitionResult), "0+"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecordsResponse(Message):
    """Represents a result for each requested partition."""

    throttle_time_ms: int = wire(WireType.INT32, "0+")
    topics: tuple[DeleteRecordsTopicResult, ...] = wire(ArrayOf(DeleteRecordsTopicResult), "0+")


DELETE_RECORDS = Api(
    key=21,
    name="DeleteRecords",
    versions=Versions.parse("0-2"),
    flexible=Versions.parse("2+"),
    request=DeleteRecordsRequest,
    response=DeleteRecordsResponse,
)
