"""A session's fetches: streamed, or merged with records from the store."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.gateway.fetch.remote_log_bounds import RemoteLogBounds
from rlm.gateway.fetch.remote_result import LogDivergence, ReadPending, ReadRefused, RemoteOutcome
from rlm.gateway.model.disconnect_cause import DisconnectCause
from rlm.gateway.session.session import Session
from rlm.gateway.session.speculative_fetch import MAX_AGE_MS
from rlm.wire.api.fetch import FETCH, NodeEndpoint, PartitionData
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import read_request, read_response
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.unit.rlm.gateway.fetch.fetch_messages import (
    ALL_ENDS,
    TRIMMED,
    answer_of,
    answered,
    asked_for_remote,
    bytes_of,
    ends_of,
    fetch_of,
    ids_of,
    local_row,
    out_of_range_row,
)
from tests.unit.rlm.gateway.session_world import TIERED, FixedView, SessionWorld, request, response

_OTHER_ID = UUID(int=9)
_VERSIONS = st.sampled_from(range(4, 19))
_CHUNKS = st.lists(st.integers(min_value=1, max_value=600), max_size=40)


@given(version=_VERSIONS, chunks=_CHUNKS, unread=st.booleans())
def test_fetch_when_nothing_is_remote_then_passes_without_a_session_wherever_it_is_cut(
    version: int, chunks: list[int], unread: bool
) -> None:
    """R17: sent without a session; the log start is that of both tiers."""
    world = SessionWorld(facts={TIERED: RemoteLogBounds(first_stored_offset=5)})
    asked = fetch_of(version, 200)
    if version >= 7:
        asked = replace(asked, session_epoch=0)
    world.client_sends(request(FETCH, version, asked), chunks=chunks)
    (sent,) = world.at_broker()
    assert read_request(FETCH, version, sent)[1] == fetch_of(version, 200)
    found = answer_of(version, local_row(0, b"x" * 400, version=version))
    if version >= 7:
        found = replace(found, session_id=77)
    world.broker_sends(response(FETCH, version, found), chunks=chunks, unread=unread)
    (row,) = answered(world, version)
    assert bytes_of(row) == b"x" * 400
    assert row.log_start_offset == (5 if version >= 5 else -1)


@given(version=_VERSIONS)
def test_fetch_when_nothing_of_it_is_changed_then_is_relayed_as_it_came(version: int) -> None:
    world = SessionWorld()
    asked = request(FETCH, version, fetch_of(version, 200))

    world.client_sends(asked)

    assert world.at_broker() == [asked[4:]]


@given(version=_VERSIONS)
def test_records_when_the_broker_says_how_many_then_may_pass_unread_and_no_more(
    version: int,
) -> None:
    world = SessionWorld()
    world.client_sends(request(FETCH, version, fetch_of(version, 200)))
    sent = response(FETCH, version, answer_of(version, local_row(0, b"x" * 400, version=version)))
    begin = sent.index(b"x" * 400)

    world.broker_sends(sent[: begin + 100])

    # Only the counts of three structures' tags follow, and all are 0.
    assert world.session.passing_bytes == len(sent) - begin - 100 <= 303
    world.broker_sends(sent[begin + 100 :], unread=True)
    assert world.session.passing_bytes == 0
    assert world.session.is_idle


def test_records_when_something_follows_that_is_changed_then_they_alone_pass_unread() -> None:
    """KIP-951: the addresses of leader hints are at the very end."""
    world = SessionWorld()
    world.client_sends(request(FETCH, 16, fetch_of(16, 200)))
    found = answer_of(16, local_row(0, b"x" * 400, version=16))
    hinted = replace(found, node_endpoints=(NodeEndpoint(node_id=1, host="h", port=1),))
    sent = response(FETCH, 16, hinted)
    begin = sent.index(b"x" * 400)

    world.broker_sends(sent[: begin + 100])

    assert world.session.passing_bytes == 300


@given(version=_VERSIONS)
def test_fetch_when_unforeseen_out_of_range_then_is_a_storage_error_and_remote_the_next_time(
    version: int,
) -> None:
    """R15: the offset is not proven to be out of range yet."""
    world = SessionWorld()
    world.client_sends(request(FETCH, version, fetch_of(version, 50)))
    world.broker_sends(response(FETCH, version, answer_of(version, out_of_range_row(0))))
    (row,) = answered(world, version)
    assert row.error_code == _storage_error(version)
    world.at_broker()
    world.client_sends(request(FETCH, version, fetch_of(version, 50), 2))
    assert len(world.at_broker()) == (4 if version >= 13 else 5)


def _storage_error(version: int) -> ErrorCode:
    """Return the error as brokers send it: before version 6, KAFKA_STORAGE_ERROR is unknown."""
    return ErrorCode.KAFKA_STORAGE_ERROR if version >= 6 else ErrorCode.NOT_LEADER_OR_FOLLOWER


@given(version=_VERSIONS)
def test_fetch_when_the_store_cannot_be_read_then_is_the_error_that_its_version_knows(
    version: int,
) -> None:
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, version, fetch_of(version, 50)))
    found = response(FETCH, version, answer_of(version, out_of_range_row(0)))
    world.broker_sends(ALL_ENDS + found + (ids_of() if version < 13 else b""))
    world.store_answers(ReadRefused(ErrorCode.KAFKA_STORAGE_ERROR))
    (row,) = answered(world, version)
    assert row.error_code == _storage_error(version)


@given(version=_VERSIONS)
def test_fetch_above_the_end_when_another_client_reads_the_store_then_is_found_out_all_the_same(
    version: int,
) -> None:
    """R15, scenario 47: each fetch of a backfill returns the log start."""
    world = SessionWorld(facts={TIERED: TRIMMED})
    backfill = SessionWorld(facts={TIERED: TRIMMED}, local_starts=world.local_starts)
    above = request(FETCH, version, fetch_of(version, 99_999))
    out_of_range = response(FETCH, version, answer_of(version, out_of_range_row(0)))
    ids = ids_of() if version < 13 else b""
    world.client_sends(above)
    world.broker_sends(out_of_range)
    backfill.client_sends(request(FETCH, version, fetch_of(version, 50)))
    backfill.broker_sends(ALL_ENDS + out_of_range + ids)
    world.at_client()

    world.client_sends(above)
    world.broker_sends(ALL_ENDS + out_of_range + ids + ALL_ENDS)

    assert len(backfill.reads) == 1
    assert world.reads[0].reads[0].is_above_end
    world.store_answers(ReadRefused(ErrorCode.OFFSET_OUT_OF_RANGE))
    (row,) = answered(world, version)
    assert row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_fetch_when_the_broker_has_what_it_once_had_not_then_it_is_streamed_from_then_on() -> None:
    world = SessionWorld(facts={TIERED: TRIMMED})
    asked = request(FETCH, 13, fetch_of(13, 400))
    served = response(FETCH, 13, answer_of(13, local_row(0)))
    world.client_sends(asked)
    world.broker_sends(response(FETCH, 13, answer_of(13, out_of_range_row(0))))
    world.client_sends(asked)
    world.broker_sends(ALL_ENDS + served)
    world.at_broker()

    world.client_sends(asked)

    assert world.at_broker() == [asked[4:]]


def test_fetch_of_another_topic_when_out_of_range_then_that_is_the_answer() -> None:
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, 13, fetch_of(13, 50, topic_id=_OTHER_ID)))
    found = answer_of(13, out_of_range_row(0), topic_id=_OTHER_ID)
    world.broker_sends(response(FETCH, 13, found))
    (row,) = answered(world, 13)
    assert row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@given(version=_VERSIONS, chunks=_CHUNKS)
def test_fetch_when_below_the_trimmed_offset_then_asks_the_ends_first_and_the_store_after(
    version: int, chunks: list[int]
) -> None:
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, version, fetch_of(version, 50, 300), 7), chunks=chunks)
    assert len(world.at_broker()) == (4 if version >= 13 else 5)
    world.broker_sends(ALL_ENDS, chunks=chunks)
    found = answer_of(version, out_of_range_row(0), local_row(1, version=version))
    ids = ids_of() if version < 13 else b""
    world.broker_sends(response(FETCH, version, found, 7) + ids, chunks=chunks)
    assert world.at_client() == []
    (wanted,) = world.reads
    assert [(each.topic_id_partition, each.offset) for each in wanted.reads] == [(TIERED, 50)]
    world.store_answers(ReadPending())
    remote, local = answered(world, version)
    assert (remote.error_code, remote.high_watermark) == (ErrorCode.NONE, 500)
    assert remote.last_stable_offset == 490
    assert remote.log_start_offset == (0 if version >= 5 else -1)
    assert bytes_of(local) == b"records"


@given(version=_VERSIONS)
def test_fetch_when_the_ends_are_known_then_its_read_is_foreseen_before_the_broker_answers(
    version: int,
) -> None:
    world = SessionWorld(facts={TIERED: TRIMMED})
    ids = ids_of() if version < 13 else b""
    answer = response(FETCH, version, answer_of(version, out_of_range_row(0)), 7) + ids
    world.client_sends(request(FETCH, version, fetch_of(version, 50), 7))
    world.broker_sends(ALL_ENDS + answer)
    world.store_answers(ReadPending())
    assert world.expected == []
    world.clock.now_ms += MAX_AGE_MS + 1

    world.client_sends(request(FETCH, version, fetch_of(version, 60), 7))

    (expected,) = world.expected
    world.broker_sends(answer)
    assert expected.reads == world.reads[-1].reads
    assert [each.offset for each in expected.reads] == [60]


@pytest.mark.parametrize(
    ("outcome", "error_code"),
    [
        (ReadRefused(ErrorCode.OFFSET_OUT_OF_RANGE), ErrorCode.OFFSET_OUT_OF_RANGE),
        (ReadRefused(ErrorCode.KAFKA_STORAGE_ERROR), ErrorCode.KAFKA_STORAGE_ERROR),
        (ReadPending(), ErrorCode.NONE),
        (LogDivergence(epoch=3, end_offset=40), ErrorCode.NONE),
    ],
)
def test_fetch_when_the_store_has_nothing_then_its_partition_says_why(
    outcome: RemoteOutcome, error_code: ErrorCode
) -> None:
    world = asked_for_remote()
    world.store_answers(outcome)
    (row,) = answered(world, 13)
    assert row.error_code == error_code
    assert row.diverging_epoch.epoch == (3 if isinstance(outcome, LogDivergence) else -1)


def test_fetch_when_above_the_ends_known_then_they_are_asked_again_after_the_answer() -> None:
    """R15: ends from before the response do not prove that the offset is above the log end."""
    world = SessionWorld(facts={TIERED: RemoteLogBounds(trimmed_offset=10_000)})
    world.client_sends(request(FETCH, 13, fetch_of(13, 600)))
    world.at_broker()
    world.broker_sends(ALL_ENDS + response(FETCH, 13, answer_of(13, out_of_range_row(0))))
    assert len(world.at_broker()) == 3
    assert world.reads == []
    world.broker_sends(ALL_ENDS)
    assert world.reads[0].reads[0].is_above_end


def test_fetch_when_the_ends_cannot_be_known_then_gets_the_brokers_error() -> None:
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, 13, fetch_of(13, 50)))
    elected = ends_of(-1, error_code=ErrorCode.OFFSET_NOT_AVAILABLE)
    world.broker_sends(elected * 3 + response(FETCH, 13, answer_of(13, out_of_range_row(0))))
    world.broker_sends(elected * 3)
    (row,) = answered(world, 13)
    assert row.error_code == ErrorCode.OFFSET_NOT_AVAILABLE


def _asked_of_follower(offset: int) -> SessionWorld:
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.local_starts.record_start(TIERED, offset + 1)
    world.client_sends(request(FETCH, 13, fetch_of(13, offset)))
    follows = ends_of(-1, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.broker_sends(follows * 3 + response(FETCH, 13, answer_of(13, out_of_range_row(0))))
    world.broker_sends(follows * 3)
    return world


def test_fetch_when_a_follower_lacks_what_was_trimmed_then_the_store_is_read_all_the_same() -> None:
    """R17, KIP-392: a follower returns no ends, so the trimmed offset serves as the end."""
    world = _asked_of_follower(50)
    (read,) = world.reads[0].reads
    assert (read.offset, read.local_start_offset, read.is_above_end) == (50, 100, False)
    world.store_answers(ReadPending())
    (row,) = answered(world, 13)
    assert (row.error_code, row.high_watermark, row.last_stable_offset) == (0, 100, 100)


def test_fetch_when_a_follower_lacks_what_was_not_trimmed_then_stays_an_error() -> None:
    """R17: the follower lags; the leader has the offset."""
    world = _asked_of_follower(150)
    assert world.reads == []
    (row,) = answered(world, 13)
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_fetch_when_the_ends_are_young_then_they_are_not_asked_again() -> None:
    world = asked_for_remote()
    world.store_answers(ReadPending())
    world.at_client()
    world.at_broker()
    world.clock.now_ms += MAX_AGE_MS + 1
    world.client_sends(request(FETCH, 13, fetch_of(13, 60), 2))
    assert len(world.at_broker()) == 1
    world.broker_sends(response(FETCH, 13, answer_of(13, out_of_range_row(0)), 2))
    assert len(world.reads) == 2


@pytest.mark.parametrize("topic_id", [_OTHER_ID, None])
@pytest.mark.parametrize("row", ["lacked", "had"])
def test_fetch_by_name_when_the_topic_is_another_then_nothing_of_the_first_is_returned(
    topic_id: UUID | None, row: str
) -> None:
    """R15: the topic was recreated, and the gateway still knows its old id."""
    world = SessionWorld(facts={TIERED: replace(TRIMMED, recorded_start_offset=80)})
    world.client_sends(request(FETCH, 12, fetch_of(12, 50)))
    found = out_of_range_row(0) if row == "lacked" else local_row(0, start=0)
    answer = response(FETCH, 12, answer_of(12, found))
    world.broker_sends(ends_of(0) + ends_of(490) + ends_of(500) + answer + ids_of(topic_id))
    assert world.reads == []
    (cached,) = answered(world, 12)
    if row == "lacked":
        assert cached.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    else:
        assert (bytes_of(cached), cached.log_start_offset) == (b"records", 0)


def test_fetch_by_name_when_the_ends_are_asked_again_then_all_answers_are_awaited() -> None:
    world = SessionWorld(facts={TIERED: RemoteLogBounds(trimmed_offset=10_000)})
    world.client_sends(request(FETCH, 12, fetch_of(12, 600)))
    world.broker_sends(
        ALL_ENDS + response(FETCH, 12, answer_of(12, out_of_range_row(0))) + ids_of()
    )
    assert world.reads == []
    world.broker_sends(ALL_ENDS)
    assert world.reads[0].reads[0].is_above_end


def test_client_when_its_fetch_waits_for_the_store_then_its_next_request_waits_too() -> None:
    world = asked_for_remote()
    world.at_broker()
    world.client_sends(request(FETCH, 13, fetch_of(13, 300), 2))
    assert world.at_broker() == []
    assert not world.session.reads_client
    world.store_answers(ReadPending())
    assert len(world.at_broker()) == 1
    assert world.session.reads_client


def test_fetch_when_the_broker_still_has_the_offset_then_its_records_are_the_answer() -> None:
    """A trim is published before the broker trims."""
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, 13, fetch_of(13, 50)))
    world.broker_sends(ends_of(0) + ends_of(490) + ends_of(500))
    world.broker_sends(response(FETCH, 13, answer_of(13, local_row(0, start=0))))
    (row,) = answered(world, 13)
    assert bytes_of(row) == b"records"
    assert world.reads == []


@pytest.mark.parametrize("error_code", [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_fetch_when_its_foreseen_read_is_not_needed_then_nothing_is_expected_any_more(
    error_code: ErrorCode,
) -> None:
    """Prepared data must neither be kept nor be sent for a later fetch."""
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, 13, fetch_of(13, 50), 7))
    world.broker_sends(ALL_ENDS + response(FETCH, 13, answer_of(13, out_of_range_row(0)), 7))
    world.store_answers(ReadPending())
    world.clock.now_ms += MAX_AGE_MS + 1
    world.client_sends(request(FETCH, 13, fetch_of(13, 60), 8))
    assert [each.offset for each in world.expected[-1].reads] == [60]
    row = PartitionData(partition_index=0, error_code=error_code, records=b"")

    world.broker_sends(response(FETCH, 13, answer_of(13, row), 8))

    assert world.expected[-1].reads == ()


def test_fetch_when_the_metadata_is_read_again_then_the_client_comes_again() -> None:
    class UnreadyReason(FixedView):
        def facts(self, partition: TopicIdPartition) -> RemoteLogBounds:
            raise RetriableError("not caught up", partition=partition)

    world = SessionWorld()
    world.session = Session(replace(world.parts, view=UnreadyReason()))

    world.client_sends(request(FETCH, 13, fetch_of(13, 50)))

    assert world.closed is not None
    assert world.closed.reason is DisconnectCause.METADATA_NOT_READY


def test_fetch_when_below_the_log_start_then_the_brokers_records_are_not_served() -> None:
    """R17."""
    world = SessionWorld(facts={TIERED: RemoteLogBounds(recorded_start_offset=80)})
    world.client_sends(request(FETCH, 13, fetch_of(13, 50)))
    world.broker_sends(ends_of(0) + ends_of(490) + ends_of(500))
    world.broker_sends(response(FETCH, 13, answer_of(13, local_row(0, start=0))))
    (wanted,) = world.reads
    assert wanted.reads[0].offset == 50
    world.store_answers(ReadRefused(ErrorCode.OFFSET_OUT_OF_RANGE))
    (row,) = answered(world, 13)
    assert row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_fetch_when_it_is_a_followers_then_the_connection_ends() -> None:
    world = SessionWorld()
    world.client_sends(request(FETCH, 13, replace(fetch_of(13, 0), replica_id=1)))
    assert world.closed is not None
    assert world.closed.reason is DisconnectCause.REPLICA_FETCH


def test_fetch_when_it_names_a_session_then_the_answer_is_that_there_is_none() -> None:
    world = SessionWorld()
    asked = replace(fetch_of(13, 0), session_id=5, session_epoch=3)
    world.client_sends(request(FETCH, 13, asked))
    (frame,) = world.at_client()
    assert read_response(FETCH, 13, frame)[1].error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert world.at_broker() == []
