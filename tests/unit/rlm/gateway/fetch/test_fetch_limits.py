"""Budgets, bounds and sessions of a fetch over both tiers, to the byte and the offset."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.log_ends import LogEnds
from rlm.gateway.fetch.merge import fits_whole, merge, remote_reads, rows_of, size_of
from rlm.gateway.fetch.plan import FetchKey, FetchPlan, is_incremental_fetch, plan_fetch
from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.gateway.fetch.remote_result import RemoteOutcome, RemoteSlice
from rlm.gateway.model.tiered_topics import TieredTopics
from rlm.remote_read.segment_parts import SegmentPart
from rlm.wire.api.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from rlm.wire.error_codes import ErrorCode
from rsm.cache.chunk_lease import ChunkLease
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from tests.unit.rlm.gateway.session_world import TOPIC_ID, FixedView

ENDS = LogEnds(start_offset=100, last_stable_offset=190, high_watermark=200)
VERSION = 13
LOCAL, REMOTE = 150, 50
OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE
MIB = 1 << 20


def tip(partition: int) -> TopicIdPartition:
    return TopicIdPartition(topic_id=TOPIC_ID, topic="orders", partition=partition)


def asked(offset: int, *, max_bytes: int = 1_000, last_fetched_epoch: int = -1) -> FetchPartition:
    return FetchPartition(
        fetch_offset=offset, partition_max_bytes=max_bytes, last_fetched_epoch=last_fetched_epoch
    )


def plan_of(*partitions: FetchPartition, max_bytes: int, log_start: int | None = None) -> FetchPlan:
    numbered = tuple(replace(each, partition=p) for p, each in enumerate(partitions))
    request = FetchRequest(
        max_bytes=max_bytes, topics=(FetchTopic(topic_id=TOPIC_ID, partitions=numbered),)
    )
    facts = RemoteLogBounds(
        first_stored_offset=0, trimmed_offset=100, recorded_start_offset=log_start
    )
    return plan_fetch(
        request,
        VERSION,
        topics=TieredTopics(name_by_id={TOPIC_ID: "orders"}),
        view=FixedView({tip(p): facts for p in range(len(partitions))}),
        local_starts=LocalStarts(),
    )


def answer_of(*rows: PartitionData) -> FetchResponse:
    numbered = tuple(replace(row, partition_index=p) for p, row in enumerate(rows))
    topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=numbered)
    return FetchResponse(responses=(topic,))


def row_of(records: bytes = b"", *, error_code: int = 0) -> PartitionData:
    return PartitionData(
        error_code=error_code, high_watermark=200, log_start_offset=100, records=records
    )


def slice_of(size_bytes: int, *, next_offset: int = 60) -> RemoteSlice:
    return RemoteSlice(
        segment_id=RemoteLogSegmentId(topic_id_partition=tip(0), id=UUID(int=1)),
        base_offset=50,
        next_offset=next_offset,
        buffers=(memoryview(b"r" * size_bytes),),
        aborted_transactions=(),
        lease=ChunkLease[SegmentPart]((), (), released=_nothing, abandoned=_nothing),
    )


def _nothing(_keys: object) -> None:
    """Do nothing: no memory is accounted for."""


def sizes(plan: FetchPlan, answer: FetchResponse, *outcomes: RemoteOutcome) -> list[int]:
    """Return the number of bytes that the client gets of each partition."""
    ends = {each.topic_id_partition: ENDS for each in plan.tiered.values()}
    reads = remote_reads(plan, rows_of(answer, VERSION), ends)
    found = dict(zip(reads, outcomes, strict=True))
    merged = merge(plan, VERSION, answer, found, ends)
    return [size_of(row.records) for row in merged.responses[0].partitions]


@pytest.mark.parametrize(
    ("partitions", "max_bytes", "expected"),
    [
        pytest.param((asked(LOCAL),), 2 * MIB, 2 * MIB, id="none is remote"),
        pytest.param((asked(REMOTE), asked(LOCAL)), 10_000, 9_000, id="what the remote one leaves"),
        pytest.param(
            (asked(REMOTE, max_bytes=9_000), asked(LOCAL), asked(LOCAL)), 9_000, 6_000, id="even"
        ),
        pytest.param(
            (asked(REMOTE, max_bytes=-5), asked(LOCAL)), 10_000, 10_000, id="it asks for nothing"
        ),
        pytest.param((asked(REMOTE, max_bytes=100),), 50, 1, id="all are remote"),
        pytest.param((asked(REMOTE), asked(LOCAL)), 8 * MIB, MIB, id="at most a mebibyte"),
        pytest.param((asked(REMOTE),), 0, 0, id="nothing is wanted"),
    ],
)
def test_plan_when_partitions_are_remote_then_the_broker_is_asked_for_what_they_leave(
    partitions: tuple[FetchPartition, ...], max_bytes: int, expected: int
) -> None:
    assert plan_of(*partitions, max_bytes=max_bytes).sent().max_bytes == expected


@pytest.mark.parametrize(("offset", "is_remote"), [(99, True), (100, False), (101, False)])
def test_plan_when_the_offset_is_at_the_local_start_then_the_broker_has_it(
    offset: int, *, is_remote: bool
) -> None:
    plan = plan_of(asked(offset), max_bytes=1_000)
    assert bool(plan.remote) == is_remote


@pytest.mark.parametrize(("offset", "is_below"), [(119, True), (120, False)])
def test_plan_when_the_offset_is_at_the_log_start_then_may_be_served(
    offset: int, *, is_below: bool
) -> None:
    plan = plan_of(asked(offset), max_bytes=1_000, log_start=120)
    (tiered,) = plan.tiered.values()
    assert (tiered.is_below_log_start, tiered.is_remote) == (is_below, is_below)


@pytest.mark.parametrize(("offset", "sent"), [(REMOTE, -1), (LOCAL, 4)])
def test_plan_when_remote_then_the_broker_does_not_compare_the_last_epoch(
    offset: int, sent: int
) -> None:
    """The broker's lineage begins where its log starts."""
    plan = plan_of(asked(offset, last_fetched_epoch=4), max_bytes=1_000)
    (topic,) = plan.sent().topics
    assert topic.partitions[0].last_fetched_epoch == sent


@pytest.mark.parametrize(("epoch", "goes_on"), [(-1, False), (0, False), (1, True)])
def test_fetch_when_of_a_session_then_continues_by_its_epoch(epoch: int, *, goes_on: bool) -> None:
    """KIP-227."""
    assert is_incremental_fetch(FetchRequest(session_id=7, session_epoch=epoch)) == goes_on


def test_plan_when_sent_then_has_no_session() -> None:
    plan = plan_of(asked(LOCAL), max_bytes=1_000)
    in_session = replace(plan, asked=replace(plan.asked, session_id=7, session_epoch=3))

    sent = in_session.sent()

    assert (sent.session_id, sent.session_epoch) == (0, -1)


def test_plan_when_some_are_taken_out_then_they_are_as_not_tiered() -> None:
    plan = plan_of(asked(REMOTE), asked(REMOTE), asked(LOCAL), max_bytes=1_000)

    left = plan.without({(TOPIC_ID, 0)})

    assert list(left.tiered) == [(TOPIC_ID, 1), (TOPIC_ID, 2)]
    assert left.remote == ((TOPIC_ID, 1),)


@pytest.mark.parametrize(
    ("offset", "error_code", "is_read"),
    [
        (119, ErrorCode.NONE, True),
        (120, ErrorCode.NONE, False),
        (119, ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
        (150, OUT_OF_RANGE, True),
    ],
)
def test_reads_when_the_broker_answers_then_only_what_it_may_not_serve_is_read(
    offset: int, error_code: int, *, is_read: bool
) -> None:
    plan = plan_of(asked(offset), max_bytes=1_000, log_start=120)
    rows = rows_of(answer_of(row_of(error_code=error_code)), VERSION)
    assert bool(remote_reads(plan, rows, {tip(0): ENDS})) == is_read


@pytest.mark.parametrize(("offset", "is_above_end"), [(200, False), (201, True)])
def test_reads_when_the_offset_is_the_high_watermark_then_is_not_above_the_end(
    offset: int, *, is_above_end: bool
) -> None:
    plan = plan_of(asked(offset), max_bytes=1_000)
    rows = rows_of(answer_of(row_of(error_code=OUT_OF_RANGE)), VERSION)
    (read,) = remote_reads(plan, rows, {tip(0): ENDS}).values()
    assert read.is_above_end == is_above_end


def test_reads_when_the_brokers_records_take_the_budget_then_one_is_read_all_the_same() -> None:
    """The first batch of that partition may be the first one of the response."""
    plan = plan_of(asked(REMOTE), asked(REMOTE), asked(LOCAL), max_bytes=500)
    answer = answer_of(
        row_of(error_code=OUT_OF_RANGE), row_of(error_code=OUT_OF_RANGE), row_of(b"l" * 500)
    )

    reads = remote_reads(plan, rows_of(answer, VERSION), {tip(p): ENDS for p in range(3)})

    assert [(read.topic_id_partition.partition, read.max_bytes) for read in reads.values()] == [
        (0, 0)
    ]


def test_reads_when_one_asks_for_less_than_nothing_then_the_next_has_the_budget() -> None:
    plan = plan_of(asked(REMOTE, max_bytes=-9), asked(REMOTE), max_bytes=600)
    gone = row_of(error_code=OUT_OF_RANGE)

    reads = remote_reads(
        plan, rows_of(answer_of(gone, gone), VERSION), dict.fromkeys(map(tip, (0, 1)), ENDS)
    )

    assert [read.max_bytes for read in reads.values()] == [0, 600]


def test_reads_when_the_broker_returns_no_ends_then_that_partition_is_not_read() -> None:
    plan = plan_of(asked(REMOTE), asked(REMOTE), max_bytes=1_000)
    gone = row_of(error_code=OUT_OF_RANGE)
    unknown = replace(ENDS, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)

    reads = remote_reads(
        plan, rows_of(answer_of(gone, gone), VERSION), {tip(0): unknown, tip(1): ENDS}
    )

    assert [read.topic_id_partition.partition for read in reads.values()] == [1]


@pytest.mark.parametrize(("second_bytes", "expected"), [(600, [900, 600]), (601, [900, 0])])
def test_merge_when_a_batch_fills_the_budget_exactly_then_is_sent(
    second_bytes: int, expected: list[int]
) -> None:
    plan = plan_of(asked(REMOTE), asked(REMOTE), max_bytes=1_500)
    gone = row_of(error_code=OUT_OF_RANGE)
    assert sizes(plan, answer_of(gone, gone), slice_of(900), slice_of(second_bytes)) == expected


@pytest.mark.parametrize(("second_bytes", "expected"), [(1_000, [1, 1_000]), (1_001, [1, 0])])
def test_merge_when_a_batch_is_as_large_as_its_partition_may_be_then_is_sent(
    second_bytes: int, expected: list[int]
) -> None:
    plan = plan_of(asked(REMOTE), asked(REMOTE), max_bytes=9_000)
    gone = row_of(error_code=OUT_OF_RANGE)
    assert sizes(plan, answer_of(gone, gone), slice_of(1), slice_of(second_bytes)) == expected


def test_merge_when_the_first_partition_is_empty_then_the_next_one_is_first() -> None:
    plan = plan_of(asked(LOCAL), asked(REMOTE), max_bytes=500)
    answer = answer_of(row_of(), row_of(error_code=OUT_OF_RANGE))
    assert sizes(plan, answer, slice_of(5_000)) == [0, 5_000]


@pytest.mark.parametrize(
    ("next_offset", "ends"), [(180, (200, 190)), (195, (200, 195)), (210, (210, 210))]
)
def test_merge_when_more_is_stored_than_the_ends_said_then_they_are_raised(
    next_offset: int, ends: tuple[int, int]
) -> None:
    plan = plan_of(asked(REMOTE), max_bytes=1_000)
    answer = answer_of(row_of(error_code=OUT_OF_RANGE))
    outcomes: dict[FetchKey, RemoteOutcome]
    outcomes = {(TOPIC_ID, 0): slice_of(10, next_offset=next_offset)}

    merged = merge(plan, VERSION, answer, outcomes, {tip(0): ENDS})

    (row,) = merged.responses[0].partitions
    assert (row.high_watermark, row.last_stable_offset) == ends


@pytest.mark.parametrize(
    ("max_bytes", "partition_bytes", "slices", "fits"),
    [
        (10, 10, (99,), True),
        (10, 10, (), True),
        (10, 5, (5, 5), True),
        (9, 5, (5, 5), False),
        (20, 5, (5, 6), False),
    ],
)
def test_outcomes_when_all_are_within_their_limits_then_fit(
    max_bytes: int, partition_bytes: int, slices: tuple[int, ...], *, fits: bool
) -> None:
    plan = plan_of(
        asked(REMOTE, max_bytes=partition_bytes),
        asked(REMOTE, max_bytes=MIB),
        max_bytes=max_bytes,
    )
    assert fits_whole(plan.asked, [slice_of(size) for size in slices]) == fits
