"""Sends requests for one partition of a topic, or of several topics, with a WireClient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from rlm.wire.api.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from rlm.wire.api.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from rlm.wire.api.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from rlm.wire.api.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from rsm.segment.ids import TopicIdPartition
from tests.integration.rlm.gateway.wire_client import WireClient

ANY_BYTES = 1 << 20
_CONSUMER = -1
_FIRST_FETCH_WITH_IDS = 13
_FIRST_LIST_OFFSETS_WITH_TIMEOUT = 10
_FIRST_EPOCH_END_WITH_REPLICA = 3


def fetch(
    client: WireClient,
    topic: TopicIdPartition,
    version: int,
    asked: FetchPartition,
    *,
    isolation_level: int = 0,
) -> PartitionData:
    """Send a Fetch; return the partition's part of the response."""
    answer = fetch_all(client, version, [(topic, asked)], isolation_level=isolation_level)
    return answer.responses[0].partitions[0]


def fetch_all(
    client: WireClient,
    version: int,
    asked: Sequence[tuple[TopicIdPartition, FetchPartition]],
    *,
    isolation_level: int = 0,
    max_bytes: int = ANY_BYTES,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
) -> FetchResponse:
    """Send one Fetch for a partition of each topic; return the response."""
    by_id = version >= _FIRST_FETCH_WITH_IDS
    topics = tuple(
        FetchTopic(
            topic="" if by_id else topic.topic,
            topic_id=topic.topic_id if by_id else UUID(int=0),
            partitions=(partition,),
        )
        for topic, partition in asked
    )
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=topics,
    )
    return client.ask(FETCH, version, request)


def from_offset(offset: int, max_bytes: int = ANY_BYTES) -> FetchPartition:
    """Return the request for partition 0 from an offset on."""
    return FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)


def list_offsets(
    client: WireClient,
    topic: str,
    version: int,
    timestamp: int,
    *,
    isolation_level: int = 0,
    epoch: int = -1,
) -> ListOffsetsPartitionResponse:
    """Send ListOffsets; return the answer for partition 0."""
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=isolation_level,
        topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),),
        timeout_ms=10_000 if version >= _FIRST_LIST_OFFSETS_WITH_TIMEOUT else 0,
    )
    return client.ask(LIST_OFFSETS, version, request).topics[0].partitions[0]


def epoch_end(
    client: WireClient, topic: str, version: int, asked: OffsetForLeaderPartition
) -> EpochEndOffset:
    """Send OffsetForLeaderEpoch; return the answer for the partition."""
    topics = (OffsetForLeaderTopic(topic=topic, partitions=(asked,)),)
    request = OffsetForLeaderEpochRequest(topics=topics)
    if version >= _FIRST_EPOCH_END_WITH_REPLICA:
        request = replace(request, replica_id=_CONSUMER)
    return client.ask(OFFSET_FOR_LEADER_EPOCH, version, request).topics[0].partitions[0]


def delete_records(
    client: WireClient, topic: str, version: int, offset: int
) -> DeleteRecordsPartitionResult:
    """Send DeleteRecords; return the answer for partition 0."""
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=topic, partitions=(asked,)),), timeout_ms=10_000
    )
    return client.ask(DELETE_RECORDS, version, request).topics[0].partitions[0]
