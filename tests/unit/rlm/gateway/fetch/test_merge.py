"""One byte budget over both tiers, in the request's order."""

from __future__ import annotations

from uuid import UUID

from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.log_ends import LogEnds
from rlm.gateway.fetch.merge import merge, remote_reads, rows_of, size_of
from rlm.gateway.fetch.plan import FetchPlan, plan_fetch
from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.gateway.fetch.remote_result import ReadPending, RemoteOutcome, RemoteSlice
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
from rsm.segment.local_segment import AbortedTransaction
from tests.unit.rlm.gateway.session_world import TOPIC_ID, FixedView

_ENDS = LogEnds(start_offset=100, last_stable_offset=190, high_watermark=200)
_VERSION = 13
_LOCAL_OFFSET, _REMOTE_OFFSET = 150, 50


def _plan(
    *offsets: int, max_bytes: int, partition_bytes: int = 1_000, isolation: int = 0
) -> FetchPlan:
    partitions = tuple(
        FetchPartition(partition=p, fetch_offset=o, partition_max_bytes=partition_bytes)
        for p, o in enumerate(offsets)
    )
    request = FetchRequest(
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=(FetchTopic(topic_id=TOPIC_ID, partitions=partitions),),
    )
    trimmed = RemoteLogBounds(first_stored_offset=0, trimmed_offset=100)
    return plan_fetch(
        request,
        _VERSION,
        topics=TieredTopics(name_by_id={TOPIC_ID: "orders"}),
        view=FixedView({_tip(p): trimmed for p in range(len(offsets))}),
        local_starts=LocalStarts(),
    )


def _tip(partition: int) -> TopicIdPartition:
    return TopicIdPartition(topic_id=TOPIC_ID, topic="orders", partition=partition)


def _answer(plan: FetchPlan, local_bytes: int = 0) -> FetchResponse:
    rows = tuple(
        PartitionData(
            partition_index=each.partition,
            error_code=ErrorCode.OFFSET_OUT_OF_RANGE if each.fetch_offset < 100 else 0,
            high_watermark=200,
            log_start_offset=100,
            records=b"" if each.fetch_offset < 100 else b"l" * local_bytes,
        )
        for each in plan.asked.topics[0].partitions
    )
    return FetchResponse(responses=(FetchableTopicResponse(topic_id=TOPIC_ID, partitions=rows),))


def _slice(size_bytes: int, *aborted: AbortedTransaction) -> RemoteSlice:
    return RemoteSlice(
        segment_id=RemoteLogSegmentId(topic_id_partition=_tip(0), id=UUID(int=1)),
        base_offset=50,
        next_offset=60,
        buffers=(memoryview(b"r" * size_bytes),),
        aborted_transactions=aborted,
        lease=ChunkLease[SegmentPart]((), (), released=_nothing, abandoned=_nothing),
    )


def _nothing(_keys: object) -> None:
    """Do nothing: no memory is accounted for."""


def _merged(
    plan: FetchPlan, answer: FetchResponse, *outcomes: RemoteOutcome
) -> tuple[PartitionData, ...]:
    ends = {each.topic_id_partition: _ENDS for each in plan.tiered.values()}
    reads = remote_reads(plan, rows_of(answer, _VERSION), ends)
    found = dict(zip(reads, outcomes, strict=True))
    return merge(plan, _VERSION, answer, found, ends).responses[0].partitions


def test_reads_when_the_budget_is_short_then_take_it_in_the_requests_order() -> None:
    """Scenario 54."""
    plan = _plan(_REMOTE_OFFSET, _REMOTE_OFFSET, _REMOTE_OFFSET, max_bytes=1_500)
    ends = {_tip(each): _ENDS for each in range(3)}
    reads = remote_reads(plan, rows_of(_answer(plan), _VERSION), ends)
    assert [each.max_bytes for each in reads.values()] == [1_000, 500]


def test_plan_when_some_partitions_are_remote_then_asks_the_broker_for_less() -> None:
    plan = _plan(_REMOTE_OFFSET, _LOCAL_OFFSET, max_bytes=10_000, partition_bytes=6_000)
    assert plan.sent().max_bytes == 5_000
    assert plan.asked.max_bytes == 10_000


def test_merge_when_a_later_batch_exceeds_the_budget_then_it_is_left_for_the_next_fetch() -> None:
    """Scenario 54: only the first partition may exceed the budget."""
    plan = _plan(_REMOTE_OFFSET, _REMOTE_OFFSET, max_bytes=1_500)
    first, second = _merged(plan, _answer(plan), _slice(900), _slice(700))
    assert (size_of(first.records), size_of(second.records)) == (900, 0)
    assert second.error_code == ErrorCode.NONE


def test_merge_when_a_later_batch_exceeds_its_partitions_own_then_it_is_left_too() -> None:
    """Scenario 55: only the first batch of a response may exceed its partition's limit."""
    plan = _plan(_REMOTE_OFFSET, _REMOTE_OFFSET, max_bytes=10_000)
    first, second = _merged(plan, _answer(plan), _slice(1_500), _slice(1_001))
    assert (size_of(first.records), size_of(second.records)) == (1_500, 0)


def test_merge_when_the_first_batch_exceeds_the_budget_then_it_is_returned_alone() -> None:
    """Scenario 55; the broker's records of later partitions wait, too."""
    plan = _plan(_REMOTE_OFFSET, _LOCAL_OFFSET, max_bytes=1_500)
    first, second = _merged(plan, _answer(plan, local_bytes=100), _slice(5_000))
    assert (size_of(first.records), size_of(second.records)) == (5_000, 0)


def test_merge_when_the_first_partition_is_empty_then_the_later_ones_keep_the_budget() -> None:
    """Scenario 54: only the first partition with records may exceed the budget."""
    plan = _plan(_REMOTE_OFFSET, _LOCAL_OFFSET, _LOCAL_OFFSET, max_bytes=1_500)
    rows = _merged(plan, _answer(plan, local_bytes=900), ReadPending())
    assert [size_of(row.records) for row in rows] == [0, 900, 0]


def test_merge_when_a_partition_is_left_then_none_aborted_only_for_readers_of_committed() -> None:
    """As in Kafka: null for readers of all records, and no transactions without their records."""
    aborted = AbortedTransaction(
        producer_id=7, first_offset=51, last_offset=55, last_stable_offset=60
    )
    for isolation, expected in ((1, ()), (0, None)):
        plan = _plan(_REMOTE_OFFSET, _REMOTE_OFFSET, max_bytes=1_500, isolation=isolation)
        _, left = _merged(plan, _answer(plan), _slice(900), _slice(700, aborted))
        assert size_of(left.records) == 0
        assert left.aborted_transactions == expected


def test_merge_when_a_read_is_under_way_then_its_partition_is_empty_and_the_others_full() -> None:
    plan = _plan(_REMOTE_OFFSET, _LOCAL_OFFSET, max_bytes=1_500)
    first, second = _merged(plan, _answer(plan, local_bytes=100), ReadPending())
    assert (first.error_code, size_of(first.records)) == (ErrorCode.NONE, 0)
    assert size_of(second.records) == 100


def test_merge_when_committed_records_are_read_then_names_the_aborted_transactions() -> None:
    """Scenario 50."""
    plan = _plan(_REMOTE_OFFSET, max_bytes=1_500, isolation=1)
    aborted = AbortedTransaction(
        producer_id=7, first_offset=51, last_offset=55, last_stable_offset=60
    )
    (row,) = _merged(plan, _answer(plan), _slice(100, aborted))
    assert row.aborted_transactions is not None
    assert [(t.producer_id, t.first_offset) for t in row.aborted_transactions] == [(7, 51)]


def test_merge_when_all_records_are_read_then_names_no_transactions() -> None:
    plan = _plan(_REMOTE_OFFSET, max_bytes=1_500)
    (row,) = _merged(plan, _answer(plan), _slice(100))
    assert row.aborted_transactions is None


def test_merge_when_a_partition_succeeds_then_its_log_start_is_that_of_both_tiers() -> None:
    """R17."""
    plan = _plan(_REMOTE_OFFSET, _LOCAL_OFFSET, max_bytes=1_500)
    rows = _merged(plan, _answer(plan), _slice(100))
    assert [row.log_start_offset for row in rows] == [0, 0]
