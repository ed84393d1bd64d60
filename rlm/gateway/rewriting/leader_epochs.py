"""Answers OffsetForLeaderEpoch from the stored lineage, for epochs that the broker forgot.

After a trim the broker's lineage starts at the local log start. Its responses for earlier epochs
are then wrong, but have no error code. The stored lineage is complete. The gateway uses it for
every epoch up to the one in which the local log may start. For later epochs the broker's lineage is
newer.

If another program removed local records, the broker may have forgotten later epochs, too. For such
an epoch it returns its log start, which is above the epoch's stored end. (Source: Kafka's
LeaderEpochFileCache.endOffsetFor.)
"""

from __future__ import annotations

from dataclasses import replace

from rlm.gateway.model.context import GatewayContext
from rlm.gateway.model.rewrite import Exchange
from rlm.gateway.rewriting.partition_walk import PartitionWalk
from rlm.gateway.rewriting.remote_log_queries import RemoteLogQuery
from rlm.wire.api.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
)
from rlm.wire.error_codes import ErrorCode
from rlmm.state.partition_state import PartitionState
from rsm.segment.epochs import EpochEntry, Lineage
from rsm.segment.ids import TopicIdPartition

_WALK: PartitionWalk[OffsetForLeaderPartition, EpochEndOffset] = PartitionWalk(
    topic_of=lambda topic: topic.topic, number_of=lambda row: row.partition
)
_Exchange = Exchange[OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse]


def can_change_leader_epochs(request: OffsetForLeaderEpochRequest, context: GatewayContext) -> bool:
    """Return whether any partition is tiered."""
    return bool(_WALK.tiered(request.topics, context))


def rewrite_leader_epochs(
    exchange: _Exchange, context: GatewayContext
) -> OffsetForLeaderEpochResponse:
    """Answer early epochs from the stored lineage. Blocks on the metadata topic."""
    topics = _WALK.changed(
        exchange.request.topics,
        exchange.response.topics,
        context,
        lambda tip, asked, response: _query(tip, response, asked.leader_epoch, context),
    )
    return replace(exchange.response, topics=topics)


def _query(
    tip: TopicIdPartition, response: EpochEndOffset, epoch: int, context: GatewayContext
) -> RemoteLogQuery[EpochEndOffset] | None:
    if response.error_code != ErrorCode.NONE:
        return None
    return RemoteLogQuery(
        topic_id_partition=tip,
        run=lambda: end_of_epoch(context.metadata.partition_state(tip), epoch, response),
        failed=lambda code: EpochEndOffset(partition=response.partition, error_code=code),
    )


def end_of_epoch(state: PartitionState, epoch: int, response: EpochEndOffset) -> EpochEndOffset:
    """Return the greatest epoch up to `epoch` and its end offset.

    Returns the broker's response if it is reliable, or if the stored lineage lacks the epoch's end.
    """
    local_start_offset = max(state.trimmed_offset or 0, state.first_readable_offset or 0)
    first_local_epoch = state.lineage.epoch_for_offset(local_start_offset)
    lineage = _since(state.lineage, state.first_readable_offset)
    end_offset = lineage.end_offset(epoch)
    if epoch < 0 or first_local_epoch is None or end_offset is None:
        return response
    is_forgotten = response.leader_epoch == epoch and response.end_offset > end_offset
    if epoch > first_local_epoch and not is_forgotten:
        return response
    known = [entry.epoch for entry in lineage.entries if entry.epoch <= epoch]
    return replace(response, leader_epoch=known[-1] if known else epoch, end_offset=end_offset)


def _since(lineage: Lineage, log_start_offset: int | None) -> Lineage:
    """Return the lineage that begins at the log start (LeaderEpochFileCache.truncateFromStart)."""
    epoch = None if log_start_offset is None else lineage.epoch_for_offset(log_start_offset)
    if log_start_offset is None or epoch is None:
        return lineage
    first = EpochEntry(epoch=epoch, start_offset=log_start_offset)
    return Lineage(entries=(first, *(each for each in lineage.entries if each.epoch > epoch)))
