"""Extends DeleteRecords to both tiers: an accepted request becomes a requested log start.

The broker deletes local records and does not know the stored ones. After the broker accepts a
request, the gateway records the offset in the metadata. The leader's manager moves the log start to
that offset. The gateway responds only after its record is accepted, so that the request cannot be
lost. After REQUEST_TIMED_OUT, a client does not know the result and retries.
"""

from __future__ import annotations

from dataclasses import replace

from rlm.gateway.model.context import GatewayContext
from rlm.gateway.model.rewrite import Exchange
from rlm.gateway.rewriting.partition_walk import PartitionWalk
from rlm.gateway.rewriting.remote_log_queries import QueryDependency, RemoteLogQuery
from rlm.wire.api.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from rlm.wire.error_codes import ErrorCode
from rlmm.events.log_start import LogStartRequested
from rlmm.state.log_starts import LogStart

HIGH_WATERMARK = -1
_NO_EPOCH = -1

_WALK: PartitionWalk[DeleteRecordsPartition, DeleteRecordsPartitionResult] = PartitionWalk(
    topic_of=lambda topic: topic.name, number_of=lambda row: row.partition_index
)
_Exchange = Exchange[DeleteRecordsRequest, DeleteRecordsResponse]


def can_change_delete_records(request: DeleteRecordsRequest, context: GatewayContext) -> bool:
    """Return whether any partition is tiered."""
    return bool(_WALK.tiered(request.topics, context))


def rewrite_delete_records(exchange: _Exchange, context: GatewayContext) -> DeleteRecordsResponse:
    """Record accepted requests. Blocks until they are read back from the metadata topic."""
    topics = _WALK.changed(
        exchange.request.topics,
        exchange.response.topics,
        context,
        lambda tip, asked, result: _query(
            LogStartRequested(
                event_id=context.new_id(),
                topic_id_partition=tip,
                offset=asked.offset,
                leader_epoch=exchange.leader_epochs.get((tip.topic, tip.partition), _NO_EPOCH),
            ),
            result,
            context,
        ),
        timeout_ms=exchange.request.timeout_ms,
    )
    return replace(exchange.response, topics=topics)


def _query(
    asked: LogStartRequested, result: DeleteRecordsPartitionResult, context: GatewayContext
) -> RemoteLogQuery[DeleteRecordsPartitionResult] | None:
    offset = _accepted_offset(result, asked.offset)
    if offset is None:
        return None
    return RemoteLogQuery(
        topic_id_partition=asked.topic_id_partition,
        run=lambda: _request(replace(asked, offset=offset), result, context),
        failed=lambda code: DeleteRecordsPartitionResult(
            partition_index=result.partition_index, error_code=code
        ),
        waits_for=QueryDependency.TOPIC,
    )


def _accepted_offset(result: DeleteRecordsPartitionResult, before_offset: int) -> int | None:
    """Return the offset below which the leader deleted records; None if it is unknown.

    REQUEST_TIMED_OUT means that the leader has deleted the records, but not every follower.
    """
    if result.error_code not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
        return None
    if before_offset != HIGH_WATERMARK:
        return before_offset
    return result.low_watermark if result.error_code == ErrorCode.NONE else None


def _request(
    event: LogStartRequested, result: DeleteRecordsPartitionResult, context: GatewayContext
) -> DeleteRecordsPartitionResult:
    """Publish the request, unless a log start or request of its leader epoch already covers it."""
    tip, asked = event.topic_id_partition, LogStart(event.offset, event.leader_epoch)
    is_of_an_epoch = event.leader_epoch != _NO_EPOCH
    if not (is_of_an_epoch and context.metadata.partition_state(tip).has_covered(asked)):
        context.metadata.publish(event)
    if result.error_code != ErrorCode.NONE:
        return result
    state = context.metadata.partition_state(tip)
    return replace(result, low_watermark=max(state.first_readable_offset or 0, event.offset))
