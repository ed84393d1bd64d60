"""How the gateway changes the broker's response, row by row, and the fetches that it sends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.gateway.fetch.local_starts import LocalStarts
from rlm.gateway.fetch.log_ends import LogEnds
from rlm.gateway.fetch.merge import merge, remote_reads, rows_of, size_of
from rlm.gateway.fetch.plan import FetchKey, FetchPlan, plan_fetch
from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.gateway.fetch.remote_result import ReadPending, RemoteOutcome
from rlm.gateway.model.tiered_topics import TieredTopics
from rlm.wire.api.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from rlm.wire.error_codes import ErrorCode
from tests.unit.rlm.gateway.fetch.test_fetch_limits import (
    ENDS,
    LOCAL,
    REMOTE,
    VERSION,
    answer_of,
    asked,
    plan_of,
    row_of,
    slice_of,
    tip,
)
from tests.unit.rlm.gateway.session_world import TOPIC_ID, FixedView

GONE = row_of(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
NOT_LEADER = row_of(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)


def merged(
    plan: FetchPlan,
    answer: FetchResponse,
    outcomes: dict[int, RemoteOutcome],
    ends: LogEnds = ENDS,
) -> tuple[PartitionData, ...]:
    found: dict[FetchKey, RemoteOutcome] = {
        (TOPIC_ID, p): outcome for p, outcome in outcomes.items()
    }
    every = {each.topic_id_partition: ends for each in plan.tiered.values()}
    return merge(plan, VERSION, answer, found, every).responses[0].partitions


def test_plan_when_no_log_start_is_recorded_then_the_first_offset_is_not_below_it() -> None:
    (tiered,) = plan_of(asked(0), max_bytes=1_000).tiered.values()
    assert not tiered.is_below_log_start


def test_plan_when_sent_then_forgets_no_partitions_of_a_session() -> None:
    plan = plan_of(asked(LOCAL), max_bytes=1_000)
    forgetting = replace(plan.asked, forgotten_topics_data=(ForgottenTopic(),))

    assert replace(plan, asked=forgetting).sent().forgotten_topics_data == ()


def test_plan_when_one_partition_is_asked_for_otherwise_then_the_others_as_the_client_did() -> None:
    plan = plan_of(
        asked(REMOTE, last_fetched_epoch=4), asked(LOCAL, last_fetched_epoch=4), max_bytes=1_000
    )

    (topic,) = plan.sent().topics

    assert [each.last_fetched_epoch for each in topic.partitions] == [-1, 4]
    assert [each.fetch_offset for each in topic.partitions] == [REMOTE, LOCAL]


def test_plan_when_several_are_remote_then_the_broker_is_asked_for_what_all_of_them_leave() -> None:
    plan = plan_of(asked(REMOTE), asked(REMOTE), asked(LOCAL), max_bytes=10_000)
    assert plan.sent().max_bytes == 8_000


@pytest.mark.parametrize(("gap_end", "sent"), [(90, 50), (100, 100), (120, 120)])
def test_plan_when_a_gap_ends_below_the_local_start_then_the_offset_itself_is_asked_for(
    gap_end: int, sent: int
) -> None:
    starts = LocalStarts()
    starts.record_gap(tip(0), 40, gap_end)

    plan = plan_fetch(
        plan_of(asked(REMOTE), max_bytes=1_000).asked,
        VERSION,
        topics=TieredTopics(name_by_id={TOPIC_ID: "orders"}),
        view=FixedView({tip(0): RemoteLogBounds(first_stored_offset=0, trimmed_offset=100)}),
        local_starts=starts,
    )

    (tiered,) = plan.tiered.values()
    assert (tiered.sent_offset, tiered.is_remote) == (sent, sent == REMOTE)


def test_reads_when_the_broker_has_records_that_may_not_be_served_then_they_take_no_budget() -> (
    None
):
    plan = plan_of(asked(119), max_bytes=600, log_start=120)
    rows = rows_of(answer_of(row_of(b"l" * 500)), VERSION)

    (read,) = remote_reads(plan, rows, {tip(0): ENDS}).values()

    assert read.max_bytes == 600


@pytest.mark.parametrize(("max_bytes", "budgets"), [(1_001, [1_000, 1]), (1_000, [1_000])])
def test_reads_when_a_byte_is_left_then_the_next_may_take_it(
    max_bytes: int, budgets: list[int]
) -> None:
    plan = plan_of(asked(REMOTE), asked(REMOTE), max_bytes=max_bytes)

    reads = remote_reads(
        plan, rows_of(answer_of(GONE, GONE), VERSION), {tip(0): ENDS, tip(1): ENDS}
    )

    assert [read.max_bytes for read in reads.values()] == budgets


def test_merge_when_the_broker_leaves_a_partition_out_then_the_others_are_merged() -> None:
    plan = plan_of(asked(REMOTE), asked(REMOTE), max_bytes=5_000)
    only_second = FetchableTopicResponse(
        topic_id=TOPIC_ID, partitions=(replace(GONE, partition_index=1),)
    )

    rows = merged(plan, FetchResponse(responses=(only_second,)), {1: slice_of(100)})

    assert [(row.partition_index, size_of(row.records)) for row in rows] == [(1, 100)]


def test_merge_when_the_broker_refuses_a_partition_then_its_answer_holds() -> None:
    plan = plan_of(asked(LOCAL), max_bytes=5_000)
    assert merged(plan, answer_of(NOT_LEADER), {}) == (NOT_LEADER,)


@pytest.mark.parametrize(("ends", "expected"), [({}, 100), ({tip(0): ENDS}, 90)])
def test_merge_when_nothing_is_stored_then_the_log_starts_where_the_broker_said_last(
    ends: dict[object, LogEnds], expected: int
) -> None:
    plan = plan_of(asked(LOCAL), max_bytes=5_000)
    facts = RemoteLogBounds(trimmed_offset=0)
    plan = replace(plan, tiered={k: replace(v, facts=facts) for k, v in plan.tiered.items()})
    known = {tip(0): replace(ENDS, start_offset=90)} if ends else {}

    (row,) = merge(plan, VERSION, answer_of(row_of()), {}, known).responses[0].partitions

    assert row.log_start_offset == expected


def test_merge_when_the_broker_answers_in_a_session_then_the_client_has_none() -> None:
    plan = plan_of(asked(LOCAL), max_bytes=5_000)
    answer = replace(answer_of(row_of()), session_id=7)

    assert merge(plan, VERSION, answer, {}, {tip(0): ENDS}).session_id == 0


def test_merge_when_a_read_is_under_way_for_a_reader_of_committed_then_none_is_aborted() -> None:
    """As in Kafka, null means that the reader did not ask for aborted transactions."""
    plan = plan_of(asked(REMOTE), max_bytes=5_000)
    for level, aborted in ((1, ()), (0, None)):
        given = replace(plan, asked=replace(plan.asked, isolation_level=level))
        (row,) = merged(given, answer_of(GONE), {0: ReadPending()})
        assert row.aborted_transactions == aborted


def test_merge_when_the_log_is_empty_then_it_ends_at_its_first_offset() -> None:
    plan = plan_of(asked(REMOTE), max_bytes=5_000)
    empty = LogEnds(start_offset=0, last_stable_offset=0, high_watermark=0)

    (row,) = merged(plan, answer_of(GONE), {0: ReadPending()}, empty)

    assert (row.high_watermark, row.last_stable_offset) == (0, 0)


def test_merge_when_the_broker_returns_no_ends_then_its_error_and_no_high_watermark() -> None:
    plan = plan_of(asked(REMOTE), max_bytes=5_000)
    unknown = replace(ENDS, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)

    (row,) = merged(plan, answer_of(GONE), {}, unknown)

    assert (row.error_code, row.high_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_records_when_there_are_none_then_take_no_bytes() -> None:
    assert [size_of(records) for records in (None, b"", b"abc")] == [0, 0, 3]
    assert size_of((memoryview(b"ab"), memoryview(b"c"))) == 3


@pytest.mark.parametrize(("version", "log_start"), [(4, -1), (5, 0), (12, 0)])
def test_merge_when_topics_have_names_then_the_budget_is_kept_too(
    version: int, log_start: int
) -> None:
    partitions = tuple(
        FetchPartition(partition=p, fetch_offset=REMOTE, partition_max_bytes=1_000) for p in (0, 1)
    )
    plan = plan_fetch(
        FetchRequest(max_bytes=1_000, topics=(FetchTopic(topic="orders", partitions=partitions),)),
        version,
        topics=TieredTopics(id_by_name={"orders": TOPIC_ID}),
        view=FixedView(
            {tip(p): RemoteLogBounds(first_stored_offset=0, trimmed_offset=100) for p in (0, 1)}
        ),
        local_starts=LocalStarts(),
    )
    rows = tuple(replace(GONE, partition_index=p) for p in (0, 1))
    answer = FetchResponse(responses=(FetchableTopicResponse(topic="orders", partitions=rows),))
    outcomes: dict[FetchKey, RemoteOutcome] = {("orders", p): slice_of(600) for p in (0, 1)}

    found = merge(plan, version, answer, outcomes, {tip(0): ENDS, tip(1): ENDS})

    merged_rows = found.responses[0].partitions
    assert [size_of(row.records) for row in merged_rows] == [600, 0]
    assert [row.log_start_offset for row in merged_rows] == [log_start] * 2
