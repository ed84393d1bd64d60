"""Fetches offsets of many logs from their leader, with one request for each kind of offset.

Each partition in a request carries the caller's leader epoch, so that a leader in another epoch
refuses it (KIP-320). The requests carry no topic id, so the caller takes the id and the epoch from
the same Metadata response.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from rlm.broker.errors import error_of
from rlm.broker.partition_results import PartitionResults, by_name, by_topic
from rlm.facts.partition_offsets import PartitionOffsets
from rlm.wire.api.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from rlm.wire.connection import Requester
from rlm.wire.error_codes import ErrorCode
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import TopicIdPartition

_FIRST_VERSION_WITH_LEADER_EPOCH = 4
_CONSUMER = -1
_LATEST = -1
_EARLIEST = -2
_READ_UNCOMMITTED = 0
_READ_COMMITTED = 1


class LogEnd(Enum):
    """Represents an end of a log by its (timestamp, isolation level) in ListOffsets."""

    LOG_START = (_EARLIEST, _READ_UNCOMMITTED)
    LAST_STABLE_OFFSET = (_LATEST, _READ_COMMITTED)
    HIGH_WATERMARK = (_LATEST, _READ_UNCOMMITTED)


def fetch_log_end(
    leader: Requester, leader_epochs: Mapping[TopicIdPartition, int], end: LogEnd
) -> PartitionResults[int]:
    """Fetch one end of many logs, each in its leader epoch.

    A partition fails with FencedError if the broker does not lead it in that epoch, with
    PartitionGoneError if it does not exist, and with RetriableError if the broker returns no
    offset. Raises the errors of `Requester.request` if the whole request fails.
    """
    timestamp, isolation_level = end.value
    found = _ask(leader, leader_epochs, timestamp=timestamp, isolation_level=isolation_level)
    return PartitionResults(
        succeeded={each: offset for each, offset in found.succeeded.items() if offset is not None},
        failed={
            **found.failed,
            **{
                each: RetriableError("the broker's response lacks the offset", partition=each)
                for each, offset in found.succeeded.items()
                if offset is None
            },
        },
    )


def fetch_first_offsets_since(
    leader: Requester, leader_epochs: Mapping[TopicIdPartition, int], since_ms: int
) -> PartitionResults[int | None]:
    """Fetch each log's first offset with a timestamp ≥ `since_ms`; None if there is none.

    The errors are those of `fetch_log_end`. Also raises ValueError if `since_ms` is negative,
    because negative timestamps have other meanings in the protocol.
    """
    if since_ms < 0:
        raise ValueError(f"cannot search for a timestamp before 1970: {since_ms}")
    return _ask(leader, leader_epochs, timestamp=since_ms, isolation_level=_READ_UNCOMMITTED)


def fetch_partition_offsets(
    leader: Requester, leader_epochs: Mapping[TopicIdPartition, int]
) -> PartitionResults[PartitionOffsets]:
    """Fetch all three ends of many logs, in three requests.

    The errors are those of `fetch_log_end`.
    """
    starts = fetch_log_end(leader, leader_epochs, LogEnd.LOG_START)
    remaining = {each: leader_epochs[each] for each in starts.succeeded}
    stable = fetch_log_end(leader, remaining, LogEnd.LAST_STABLE_OFFSET)
    remaining = {each: leader_epochs[each] for each in stable.succeeded}
    watermarks = fetch_log_end(leader, remaining, LogEnd.HIGH_WATERMARK)
    return PartitionResults(
        succeeded={
            each: PartitionOffsets(
                log_start_offset=starts.succeeded[each],
                last_stable_offset=stable.succeeded[each],
                high_watermark=high_watermark,
            )
            for each, high_watermark in watermarks.succeeded.items()
        },
        failed={**starts.failed, **stable.failed, **watermarks.failed},
    )


def _ask(
    leader: Requester,
    leader_epochs: Mapping[TopicIdPartition, int],
    *,
    timestamp: int,
    isolation_level: int,
) -> PartitionResults[int | None]:
    if not leader_epochs:
        return PartitionResults(succeeded={}, failed={})
    topics = tuple(
        ListOffsetsTopic(
            name=topic,
            partitions=tuple(
                ListOffsetsPartition(
                    partition_index=each.partition,
                    current_leader_epoch=leader_epochs[each],
                    timestamp=timestamp,
                )
                for each in members
            ),
        )
        for topic, members in by_topic(leader_epochs).items()
    )
    request = ListOffsetsRequest(
        replica_id=_CONSUMER, isolation_level=isolation_level, topics=topics
    )
    response = leader.request(LIST_OFFSETS, request, at_least=_FIRST_VERSION_WITH_LEADER_EPOCH)
    return _results_of(response, leader_epochs)


def _results_of(
    response: ListOffsetsResponse, leader_epochs: Mapping[TopicIdPartition, int]
) -> PartitionResults[int | None]:
    rows = {
        (topic.name, row.partition_index): row
        for topic in response.topics
        for row in topic.partitions
    }
    succeeded: dict[TopicIdPartition, int | None] = {}
    failed: dict[TopicIdPartition, TieredStorageError] = {}
    for name, partition in by_name(leader_epochs).items():
        row = rows.get(name)
        if row is None:
            failed[partition] = RetriableError(
                "the broker's response lacks the partition", partition=partition
            )
        elif row.error_code != ErrorCode.NONE:
            failed[partition] = error_of(
                row.error_code, partition=partition, leader_epoch=leader_epochs[partition]
            )
        else:
            succeeded[partition] = row.offset if row.offset >= 0 else None
    return PartitionResults(succeeded=succeeded, failed=failed)
