"""Moves log start offsets forward on the leader, and returns the new log start offsets.

DeleteRecords carries no leader epoch, so a broker that leads in a newer epoch would delete for an
old plan. Therefore this module confirms the epoch on the same connection right before. If the
broker no longer leads, this module sends nothing to the new leader, whose log may lack records that
the plan counted as stored. REQUEST_TIMED_OUT means that the leader has deleted the records, but a
follower is down or slow.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlm.broker.errors import error_of
from rlm.broker.list_offsets import LogEnd, fetch_log_end
from rlm.broker.partition_results import PartitionResults, by_name, by_topic
from rlm.broker.spi import RecordDeletion
from rlm.wire.api.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from rlm.wire.connection import Requester
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition

# How long the leader waits for its followers after it has deleted the records.
_FOLLOWERS_TIMEOUT_MS = 1_000


def delete_records(
    leader: Requester, deletions: Mapping[TopicIdPartition, RecordDeletion]
) -> PartitionResults[int]:
    """Delete the records of all partitions with one request; return each log start offset.

    The log start offsets are read after the deletion. A partition fails with FencedError if the
    broker does not lead it in that epoch, and with UnsupportedError if the topic's cleanup.policy
    lacks `delete`. It fails with RetriableError if the offset is above the high watermark, or if
    the log start offset is still below the requested one. Raises the errors of `Requester.request`
    if a whole request fails; the records may then have been deleted. Idempotent: a log start offset
    never moves back.
    """
    epochs = {each: deletion.leader_epoch for each, deletion in deletions.items()}
    confirmed = fetch_log_end(leader, epochs, LogEnd.LOG_START)
    allowed = {each: deletions[each] for each in confirmed.succeeded}
    if not allowed:
        return confirmed
    response = leader.request(DELETE_RECORDS, _request_of(allowed))
    done, refused = _outcome_of(response, allowed)
    starts = fetch_log_end(leader, {each: epochs[each] for each in done}, LogEnd.LOG_START)
    short = {
        each: RetriableError(
            "the log start offset is still below the requested offset",
            partition=each,
            log_start_offset=start_offset,
            before_offset=deletions[each].before_offset,
        )
        for each, start_offset in starts.succeeded.items()
        if start_offset < deletions[each].before_offset
    }
    return PartitionResults(
        succeeded={each: start for each, start in starts.succeeded.items() if each not in short},
        failed={**confirmed.failed, **refused, **starts.failed, **short},
    )


def _request_of(deletions: Mapping[TopicIdPartition, RecordDeletion]) -> DeleteRecordsRequest:
    topics = tuple(
        DeleteRecordsTopic(
            name=topic,
            partitions=tuple(
                DeleteRecordsPartition(
                    partition_index=each.partition, offset=deletions[each].before_offset
                )
                for each in members
            ),
        )
        for topic, members in by_topic(deletions).items()
    )
    return DeleteRecordsRequest(topics=topics, timeout_ms=_FOLLOWERS_TIMEOUT_MS)


def _outcome_of(
    response: DeleteRecordsResponse, deletions: Mapping[TopicIdPartition, RecordDeletion]
) -> tuple[tuple[TopicIdPartition, ...], Mapping[TopicIdPartition, TieredStorageError]]:
    """Return the partitions whose records were deleted, and the errors of the others."""
    codes = {
        (topic.name, row.partition_index): row.error_code
        for topic in response.topics
        for row in topic.partitions
    }
    done: list[TopicIdPartition] = []
    refused: dict[TopicIdPartition, TieredStorageError] = {}
    for name, partition in by_name(deletions).items():
        code = codes.get(name)
        if code is None:
            refused[partition] = RetriableError(
                "the broker's response lacks the partition", partition=partition
            )
        elif code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
            done.append(partition)
        else:
            refused[partition] = error_of(code, partition=partition)
    return tuple(done), refused
