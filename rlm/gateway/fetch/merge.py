"""Merges the broker's Fetch response and the reads from the store into one response. Pure.

The byte budget applies to the partitions in the request's order. Only the first partition with
records may exceed the budget or its own limit. If a partition's records do not fit, the response
contains none of them, and the client fetches them again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rlm.gateway.fetch.log_ends import LogEnds
from rlm.gateway.fetch.plan import NO_SESSION_ID, FetchKey, FetchPlan, TieredFetch
from rlm.gateway.fetch.remote_result import (
    GapBelow,
    LogDivergence,
    ReadPending,
    ReadThrottled,
    RemoteOutcome,
    RemoteSlice,
)
from rlm.gateway.model.actions import PartitionFetch
from rlm.wire.api.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from rlm.wire.error_codes import ErrorCode, in_fetch
from rlm.wire.schema import Records
from rsm.segment.ids import TopicIdPartition

READ_COMMITTED = 1
_LOG_START_VERSION = 5
_NO_RECORDS = b""
_NOT_DIVERGING = EpochEndOffset()

Rows = Mapping[FetchKey, PartitionData]


def rows_of(response: FetchResponse, version: int) -> dict[FetchKey, PartitionData]:
    """Return a response's partitions by topic and partition number."""
    by_id = version >= 13
    return {
        (topic.topic_id if by_id else topic.topic, row.partition_index): row
        for topic in response.responses
        for row in topic.partitions
    }


def left_to_store(plan: FetchPlan, rows: Rows) -> list[FetchKey]:
    """Return the tiered partitions that the store must serve, in the request's order.

    The broker lacks their offset, or has an offset that is below the log start.
    """
    return [key for key, each in plan.tiered.items() if key in rows and _is_left(each, rows[key])]


def _is_left(tiered: TieredFetch, row: PartitionData) -> bool:
    if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return True
    return row.error_code == ErrorCode.NONE and tiered.is_below_log_start


def remote_reads(
    plan: FetchPlan, rows: Rows, ends: Mapping[TopicIdPartition, LogEnds]
) -> dict[FetchKey, PartitionFetch]:
    """Return the reads from the store within the byte budget, in the request's order.

    The first batch of a read may exceed the limit; `merge` decides whether to send it. The result
    omits partitions whose log ends have an error. After its first partition, it also omits
    partitions for which the budget leaves no bytes.
    """
    left = dict.fromkeys(left_to_store(plan, rows))
    local_bytes = sum(size_of(row.records) for key, row in rows.items() if key not in left)
    budget_bytes = max(plan.asked.max_bytes - local_bytes, 0)
    reads: dict[FetchKey, PartitionFetch] = {}
    for key in left:
        tiered = plan.tiered[key]
        asked, known = tiered.asked, ends[tiered.topic_id_partition]
        max_bytes = min(max(asked.partition_max_bytes, 0), budget_bytes)
        if known.error_code != ErrorCode.NONE or (budget_bytes <= 0 and reads):
            continue
        reads[key] = PartitionFetch(
            topic_id_partition=tiered.topic_id_partition,
            offset=asked.fetch_offset,
            max_bytes=max_bytes,
            local_start_offset=known.start_offset,
            last_fetched_epoch=asked.last_fetched_epoch,
            is_above_end=asked.fetch_offset > known.high_watermark,
        )
        budget_bytes -= max_bytes
    return reads


def merge(
    plan: FetchPlan,
    version: int,
    response: FetchResponse,
    outcomes: Mapping[FetchKey, RemoteOutcome],
    ends: Mapping[TopicIdPartition, LogEnds],
) -> FetchResponse:
    """Return the client's response for the outcomes of the reads; the caller owns the slices."""
    rows = rows_of(response, version)
    for key, tiered in plan.tiered.items():
        row = rows.get(key)
        if row is None:
            continue
        if _is_left(tiered, row):
            known = ends[tiered.topic_id_partition]
            log_start_offset = _log_start(tiered, known.start_offset, version)
            outcome = outcomes.get(key) or ReadPending()
            rows[key] = _remote_row(row, outcome, known, plan, log_start_offset)
        elif row.error_code == ErrorCode.NONE:
            known_ends = ends.get(tiered.topic_id_partition)
            local_start = row.log_start_offset if known_ends is None else known_ends.start_offset
            log_start_offset = _log_start(tiered, local_start, version)
            rows[key] = replace(row, log_start_offset=log_start_offset)
    _keep_budget(plan, rows, version)
    return _with_rows(response, rows, version)


def fits_whole(asked: FetchRequest, outcomes: Sequence[RemoteOutcome]) -> bool:
    """Return True only if `merge` keeps all outcomes in a response that has no other records."""
    sizes = [each.size_bytes for each in outcomes if isinstance(each, RemoteSlice)]
    if len(sizes) <= 1:
        return True
    most_bytes = min(
        each.partition_max_bytes for topic in asked.topics for each in topic.partitions
    )
    return sum(sizes) <= asked.max_bytes and max(sizes) <= most_bytes


def refuse(
    response: FetchResponse,
    version: int,
    *,
    out_of_range: Collection[FetchKey],
    any_records: Collection[FetchKey],
) -> FetchResponse:
    """Replace possibly wrong responses with KAFKA_STORAGE_ERROR, so that clients retry.

    Replaces OFFSET_OUT_OF_RANGE for partitions in `out_of_range`, and success for partitions in
    `any_records`.
    """
    refused = {
        *((key, ErrorCode.OFFSET_OUT_OF_RANGE) for key in out_of_range),
        *((key, ErrorCode.NONE) for key in any_records),
    }
    rows = {
        key: _error_row(row, ErrorCode.KAFKA_STORAGE_ERROR, version)
        if (key, row.error_code) in refused
        else row
        for key, row in rows_of(response, version).items()
    }
    return _with_rows(response, rows, version)


def _with_rows(response: FetchResponse, rows: Rows, version: int) -> FetchResponse:
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                rows[topic.topic_id if version >= 13 else topic.topic, row.partition_index]
                for row in topic.partitions
            ),
        )
        for topic in response.responses
    )
    return replace(response, responses=topics, session_id=NO_SESSION_ID)


def size_of(records: Records | None) -> int:
    """Return the size of the records in bytes."""
    if records is None:
        return 0
    return sum(map(len, records)) if isinstance(records, tuple) else len(records)


def _remote_row(
    row: PartitionData,
    outcome: RemoteOutcome,
    ends: LogEnds,
    plan: FetchPlan,
    log_start_offset: int,
) -> PartitionData:
    if ends.error_code != ErrorCode.NONE:
        return _error_row(row, ends.error_code, plan.version)
    if isinstance(outcome, RemoteSlice | ReadPending | ReadThrottled | LogDivergence | GapBelow):
        return _success_row(row, outcome, ends, plan, log_start_offset)
    return _error_row(row, outcome.error_code, plan.version)


def _is_committed(plan: FetchPlan) -> bool:
    return plan.asked.isolation_level == READ_COMMITTED


def _success_row(
    row: PartitionData,
    outcome: RemoteSlice | ReadPending | ReadThrottled | LogDivergence | GapBelow,
    ends: LogEnds,
    plan: FetchPlan,
    log_start_offset: int,
) -> PartitionData:
    read_committed = _is_committed(plan)
    aborted: tuple[AbortedTransaction, ...] | None = () if read_committed else None
    records: Records = _NO_RECORDS
    diverging = _NOT_DIVERGING
    stored_end_offset = -1
    if isinstance(outcome, RemoteSlice):
        records = outcome.buffers
        stored_end_offset = outcome.next_offset
        if read_committed:
            aborted = tuple(
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in outcome.aborted_transactions
            )
    elif isinstance(outcome, LogDivergence):
        diverging = EpochEndOffset(epoch=outcome.epoch, end_offset=outcome.end_offset)
    return PartitionData(
        partition_index=row.partition_index,
        # The known ends may be older than the stored records, which are all committed and stable.
        high_watermark=max(ends.high_watermark, stored_end_offset),
        last_stable_offset=max(ends.last_stable_offset, stored_end_offset),
        log_start_offset=log_start_offset,
        diverging_epoch=diverging,
        aborted_transactions=aborted,
        records=records,
    )


def _error_row(row: PartitionData, error_code: int, version: int) -> PartitionData:
    return PartitionData(
        partition_index=row.partition_index,
        error_code=in_fetch(error_code, version),
        high_watermark=-1,
        records=_NO_RECORDS,
    )


def _log_start(tiered: TieredFetch, local_start_offset: int, version: int) -> int:
    return tiered.facts.log_start(local_start_offset) if version >= _LOG_START_VERSION else -1


def _keep_budget(plan: FetchPlan, rows: dict[FetchKey, PartitionData], version: int) -> None:
    """Remove records that exceed the budget or the partition's limit, in the request's order."""
    left_bytes = plan.asked.max_bytes
    is_first = True
    for topic in plan.asked.topics:
        for asked in topic.partitions:
            key = (topic.topic_id if version >= 13 else topic.topic, asked.partition)
            row = rows.get(key)
            if row is None or not (row_bytes := size_of(row.records)):
                continue
            if row_bytes > min(left_bytes, asked.partition_max_bytes) and not is_first:
                rows[key] = replace(
                    row,
                    records=_NO_RECORDS,
                    aborted_transactions=() if _is_committed(plan) else None,
                )
                continue
            left_bytes -= row_bytes
            is_first = False
