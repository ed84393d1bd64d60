"""OffsetForLeaderEpoch from the stored lineage, for epochs that the broker no longer knows well.

After its log was trimmed the broker answers for early epochs without an error, and wrongly: its
lineage begins at the local start. The stored one is whole. So every epoch up to the one in which
the local log may begin is answered from it; above, the broker's own lineage is the newer one.
(Source: Kafka's LeaderEpochFileCache.endOffsetFor.)
"""

from __future__ import annotations

from dataclasses import replace

from rlm.gateway.context import GatewayContext
from rlm.gateway.rewriting.rewrite import Exchange
from rlm.gateway.rewriting.stored_log import answer_or_error
from rlm.wire.api.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from rlm.wire.error_codes import ErrorCode
from rlmm.spi import PartitionState
from rsm.segment.ids import TopicIdPartition

_Exchange = Exchange[OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse]


def leader_epochs_concern(request: OffsetForLeaderEpochRequest, context: GatewayContext) -> bool:
    """Whether any partition is tiered."""
    return any(
        context.topics.partition(topic.topic, asked.partition) is not None
        for topic in request.topics
        for asked in topic.partitions
    )


def rewrite_leader_epochs(
    exchange: _Exchange, context: GatewayContext
) -> OffsetForLeaderEpochResponse:
    """Answer early epochs from the stored lineage. Blocks on the metadata topic."""
    asked = {
        (topic.topic, partition.partition): partition.leader_epoch
        for topic in exchange.request.topics
        for partition in topic.partitions
    }
    return replace(
        exchange.response,
        topics=tuple(
            replace(
                topic,
                partitions=tuple(
                    _answer(
                        context.topics.partition(topic.topic, answer.partition),
                        answer,
                        asked.get((topic.topic, answer.partition)),
                        context,
                    )
                    for answer in topic.partitions
                ),
            )
            for topic in exchange.response.topics
        ),
    )


def _answer(
    tip: TopicIdPartition | None,
    answer: EpochEndOffset,
    epoch: int | None,
    context: GatewayContext,
) -> EpochEndOffset:
    if tip is None or epoch is None or answer.error_code != ErrorCode.NONE:
        return answer
    return answer_or_error(
        context,
        tip,
        lambda: end_of_epoch(context.metadata.partition_state(tip), epoch, answer),
        lambda code: EpochEndOffset(partition=answer.partition, error_code=code),
    )


def end_of_epoch(state: PartitionState, epoch: int, answer: EpochEndOffset) -> EpochEndOffset:
    """The greatest epoch not above `epoch` and where it ends; the broker's answer if it knows."""
    local_start_offset = max(state.trimmed_offset or 0, state.log_start_offset or 0)
    first_local_epoch = state.lineage.epoch_for_offset(local_start_offset)
    end_offset = state.lineage.end_offset(epoch)
    if epoch < 0 or first_local_epoch is None or epoch > first_local_epoch or end_offset is None:
        return answer
    known = [entry.epoch for entry in state.lineage.entries if entry.epoch <= epoch]
    return replace(answer, leader_epoch=known[-1] if known else epoch, end_offset=end_offset)
