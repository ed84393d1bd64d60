"""Answers ListOffsets for both tiers.

| request | response |
|---|---|
| latest (-1), earliest local (-4) | the broker's |
| earliest (-2) | the log start over both tiers |
| max timestamp (-3) | the greater of both tiers' maximums; if they are equal, the lower offset |
| latest tiered (-5) | the last stored offset, -1 if nothing is stored |
| earliest pending upload (-6) | last stored offset + 1, at least the log start |
| a timestamp | the lower of the offsets found in both tiers |

The gateway first sends the request to the broker. The broker authorizes the client, checks the
leader epoch and rejects unsupported versions. The broker's errors pass unchanged. For earliest
pending upload, the gateway requests earliest, because only the broker knows the log start before
anything is stored. The gateway looks up timestamps in the store, for several partitions at once,
within the client's timeout. (Source: KIP-405, KIP-1005, KIP-1023, KIP-1075; Kafka's UnifiedLog.)
"""

from __future__ import annotations

from dataclasses import replace

from rlm.gateway.model.context import GatewayContext
from rlm.gateway.model.rewrite import Exchange
from rlm.gateway.rewriting.partition_walk import PartitionWalk
from rlm.gateway.rewriting.remote_log_queries import QueryDependency, RemoteLogQuery
from rlm.remote_read.timestamps import FoundRecord
from rlm.wire.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from rlm.wire.error_codes import ErrorCode
from rlmm.lookup import log_start_offset
from rsm.segment.coverage import stored_end, stored_ranges
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import SegmentState

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_FIRST_VERSION_WITH_EPOCHS = 4
_FIRST_VERSION_WITH_PENDING_UPLOAD = 11
_UNKNOWN = -1
_REMOTE_TIMESTAMPS = (EARLIEST, MAX_TIMESTAMP, LATEST_TIERED, EARLIEST_PENDING_UPLOAD)

_WALK: PartitionWalk[ListOffsetsPartition, ListOffsetsPartitionResponse] = PartitionWalk(
    topic_of=lambda topic: topic.name, number_of=lambda row: row.partition_index
)
_Exchange = Exchange[ListOffsetsRequest, ListOffsetsResponse]


def can_change_list_offsets(request: ListOffsetsRequest, context: GatewayContext) -> bool:
    """Return whether any tiered partition's answer may differ from the broker's."""
    asked = _WALK.tiered(request.topics, context)
    return any(_is_remote_timestamp(each.timestamp) for each in asked)


def list_offsets_waits_for_store(request: ListOffsetsRequest) -> bool:
    """Return whether any partition is queried by a timestamp or for the maximum timestamp."""
    return any(
        _waits_for_store(each.timestamp) for topic in request.topics for each in topic.partitions
    )


def request_log_start(
    version: int, request: ListOffsetsRequest, context: GatewayContext
) -> ListOffsetsRequest | None:
    """Return the request with earliest for earliest pending upload; None if it has none.

    In versions without this timestamp, it passes unchanged, so that the broker rejects it.
    """

    def is_changed(topic: str, row: ListOffsetsPartition) -> bool:
        is_tiered = context.topics.partition(topic, row.partition_index) is not None
        return is_tiered and row.timestamp == EARLIEST_PENDING_UPLOAD

    def changed(topic: str, row: ListOffsetsPartition) -> ListOffsetsPartition:
        return replace(row, timestamp=EARLIEST) if is_changed(topic, row) else row

    if version < _FIRST_VERSION_WITH_PENDING_UPLOAD or not any(
        is_changed(topic.name, row) for topic in request.topics for row in topic.partitions
    ):
        return None
    return replace(
        request,
        topics=tuple(
            replace(topic, partitions=tuple(changed(topic.name, row) for row in topic.partitions))
            for topic in request.topics
        ),
    )


def rewrite_list_offsets(exchange: _Exchange, context: GatewayContext) -> ListOffsetsResponse:
    """Answer for both tiers. Blocks on the metadata topic, and for timestamps on the store."""
    topics = _WALK.changed(
        exchange.request.topics,
        exchange.response.topics,
        context,
        lambda tip, asked, response: _query(tip, response, asked.timestamp, exchange, context),
        timeout_ms=exchange.request.timeout_ms,
    )
    return replace(exchange.response, topics=topics)


def _query(
    tip: TopicIdPartition,
    response: ListOffsetsPartitionResponse,
    timestamp: int,
    exchange: _Exchange,
    context: GatewayContext,
) -> RemoteLogQuery[ListOffsetsPartitionResponse] | None:
    if response.error_code != ErrorCode.NONE or not _is_remote_timestamp(timestamp):
        return None

    def over_both_tiers() -> ListOffsetsPartitionResponse:
        found = _over_both_tiers(tip, response, timestamp, context)
        has_epochs = exchange.version >= _FIRST_VERSION_WITH_EPOCHS
        return found if has_epochs else replace(found, leader_epoch=_UNKNOWN)

    return RemoteLogQuery(
        topic_id_partition=tip,
        run=over_both_tiers,
        failed=lambda code: ListOffsetsPartitionResponse(
            partition_index=response.partition_index, error_code=_retried_error(timestamp, code)
        ),
        waits_for=QueryDependency.STORE if _waits_for_store(timestamp) else None,
    )


def _waits_for_store(timestamp: int) -> bool:
    return timestamp >= 0 or timestamp == MAX_TIMESTAMP


def _retried_error(timestamp: int, code: ErrorCode) -> ErrorCode:
    """Return an error that makes every client retry.

    librdkafka (2.16) requests both ends of a log at once. If the earliest fails with
    KAFKA_STORAGE_ERROR just before the latest arrives, it concludes that the log is empty.
    """
    is_unsure = code == ErrorCode.KAFKA_STORAGE_ERROR and not _waits_for_store(timestamp)
    return ErrorCode.LEADER_NOT_AVAILABLE if is_unsure else code


def _over_both_tiers(
    tip: TopicIdPartition,
    local: ListOffsetsPartitionResponse,
    timestamp: int,
    context: GatewayContext,
) -> ListOffsetsPartitionResponse:
    match timestamp:
        case _ if timestamp >= 0:
            return _first_since(tip, local, timestamp, context)
        case _ if timestamp == MAX_TIMESTAMP:
            return _max_timestamp(tip, local, context)
        case _ if timestamp == EARLIEST:
            start_offset = log_start_offset(context.metadata, tip, local.offset)
            return _response_at(tip, local, start_offset, context)
        case _ if timestamp == LATEST_TIERED:
            return _response_at(tip, local, _stored_end(tip, context) - 1, context)
        case _:
            return _response_at(tip, local, _first_not_stored(tip, local, context), context)


def _first_since(
    tip: TopicIdPartition,
    local: ListOffsetsPartitionResponse,
    timestamp_ms: int,
    context: GatewayContext,
) -> ListOffsetsPartitionResponse:
    # A stored record at or above the broker's offset cannot be the first.
    below_offset = None if local.offset == _UNKNOWN else local.offset
    found = context.timestamps.record_since(tip, timestamp_ms, below_offset=below_offset)
    if found is None or (below_offset is not None and found.offset >= below_offset):
        return local
    return _found(local, found)


def _max_timestamp(
    tip: TopicIdPartition, local: ListOffsetsPartitionResponse, context: GatewayContext
) -> ListOffsetsPartitionResponse:
    """Return the greater of both tiers' maximums; if they are equal, the lower offset."""
    found = context.timestamps.record_of_max_timestamp(tip, above_ms=local.timestamp - 1)
    if found is None or (-found.timestamp_ms, found.offset) > (-local.timestamp, local.offset):
        return local
    return _found(local, found)


def _stored_end(tip: TopicIdPartition, context: GatewayContext) -> int:
    """Return the end of the stored log, at least the trimmed offset; 0 if nothing was stored."""
    state = context.metadata.partition_state(tip)
    records = context.metadata.list_remote_log_segments(
        tip, states=(SegmentState.COPY_SEGMENT_FINISHED,)
    )
    ranges = stored_ranges(state.lineage, (record.metadata for record in records))
    return max(stored_end(ranges) or 0, state.trimmed_offset or 0)


def _first_not_stored(
    tip: TopicIdPartition, local: ListOffsetsPartitionResponse, context: GatewayContext
) -> int:
    start_offset = log_start_offset(context.metadata, tip, local.offset)
    return max(_stored_end(tip, context), start_offset)


def _response_at(
    tip: TopicIdPartition,
    local: ListOffsetsPartitionResponse,
    offset: int,
    context: GatewayContext,
) -> ListOffsetsPartitionResponse:
    """Return an offset without a timestamp; below the log start without an epoch, as in Kafka."""
    if offset == local.offset:
        return local
    state = context.metadata.partition_state(tip)
    readable = offset >= (state.first_readable_offset or 0)
    epoch = state.lineage.epoch_for_offset(offset) if readable else None
    return replace(
        local, offset=offset, timestamp=_UNKNOWN, leader_epoch=_UNKNOWN if epoch is None else epoch
    )


def _found(local: ListOffsetsPartitionResponse, found: FoundRecord) -> ListOffsetsPartitionResponse:
    epoch = _UNKNOWN if found.leader_epoch is None else found.leader_epoch
    return replace(local, offset=found.offset, timestamp=found.timestamp_ms, leader_epoch=epoch)


def _is_remote_timestamp(timestamp: int) -> bool:
    return timestamp >= 0 or timestamp in _REMOTE_TIMESTAMPS
