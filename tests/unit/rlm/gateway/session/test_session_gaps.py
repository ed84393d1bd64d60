"""A session's fetches in gaps between the stored segments and the broker's log."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlm.gateway.fetch.remote_result import GapBelow
from rlm.wire.api.fetch import FETCH, PartitionData
from rlm.wire.error_codes import ErrorCode
from rlm.wire.frames import read_request
from tests.unit.rlm.gateway.fetch.fetch_messages import (
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
from tests.unit.rlm.gateway.session_world import TIERED, TOPIC_ID, SessionWorld, request, response


def test_fetch_when_it_lies_in_a_gap_after_the_store_then_continues_at_the_broker() -> None:
    """Scenario 56: the first response is empty, the second one begins with the next batch."""
    world = asked_for_remote(95)
    world.store_answers(GapBelow(100))
    (row,) = answered(world, 13)
    assert (row.error_code, bytes_of(row)) == (ErrorCode.NONE, b"")
    world.at_broker()
    world.client_sends(request(FETCH, 13, fetch_of(13, 95), 2))
    (sent,) = world.at_broker()
    assert read_request(FETCH, 13, sent)[1] == fetch_of(13, 100)
    world.broker_sends(response(FETCH, 13, answer_of(13, local_row(0)), 2))
    assert bytes_of(answered(world, 13)[0]) == b"records"


@pytest.mark.parametrize(
    ("topic_id", "row", "code"),
    [
        (TOPIC_ID, local_row(0), ErrorCode.NONE),
        (UUID(int=9), local_row(0), ErrorCode.KAFKA_STORAGE_ERROR),
        (None, out_of_range_row(0), ErrorCode.KAFKA_STORAGE_ERROR),
        (
            UUID(int=9),
            PartitionData(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ),
    ],
    ids=["same", "another", "unknown", "refused"],
)
def test_fetch_by_name_when_it_lies_in_a_gap_then_continues_after_it_in_the_same_topic_only(
    topic_id: UUID | None, row: PartitionData, code: ErrorCode
) -> None:
    """Scenario 56: nothing of a recreated topic is skipped."""
    world = SessionWorld(facts={TIERED: TRIMMED})
    world.client_sends(request(FETCH, 12, fetch_of(12, 95)))
    lacked = response(FETCH, 12, answer_of(12, out_of_range_row(0)))
    world.broker_sends(ends_of(100) + ends_of(490) + ends_of(500) + lacked + ids_of())
    world.store_answers(GapBelow(100))
    world.at_client()
    world.at_broker()

    world.client_sends(request(FETCH, 12, fetch_of(12, 95), 2))

    sent = read_request(FETCH, 12, world.at_broker()[0])[1]
    assert sent.topics[0].partitions[0].fetch_offset == 100
    world.broker_sends(response(FETCH, 12, answer_of(12, row), 2) + ids_of(topic_id))
    (cached,) = answered(world, 12)
    assert (cached.error_code, bytes_of(cached)) == (code, b"" if code else b"records")


def test_fetch_when_the_broker_was_trimmed_after_a_gap_then_the_store_is_read_again() -> None:
    """Scenario 56: the batch after the gap is stored by now."""
    world = asked_for_remote(95)
    world.store_answers(GapBelow(100))
    world.client_sends(request(FETCH, 13, fetch_of(13, 95), 2))
    world.broker_sends(response(FETCH, 13, answer_of(13, out_of_range_row(0)), 2))
    world.at_client()
    world.clock.sleep_ms(10_000)
    world.client_sends(request(FETCH, 13, fetch_of(13, 95), 3))
    world.broker_sends(ends_of(200) + ends_of(490) + ends_of(500))
    world.broker_sends(response(FETCH, 13, answer_of(13, out_of_range_row(0)), 3))
    assert [each.offset for wanted in world.reads for each in wanted.reads] == [95, 95]
