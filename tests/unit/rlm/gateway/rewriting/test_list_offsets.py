"""ListOffsets over both tiers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rlm.gateway.model.rewrite import Exchange
from rlm.gateway.model.tiered_topics import TieredTopics
from rlm.gateway.rewriting.list_offsets import (
    can_change_list_offsets,
    request_log_start,
    rewrite_list_offsets,
)
from rlm.wire.api.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from rlm.wire.codec import encode
from rlm.wire.error_codes import ErrorCode
from rsm.segment.epochs import Lineage
from tests.remote_world import TIP
from tests.unit.rlm.gateway.gateway_world import BASE_MS, GatewayWorld, single_records

LINEAGE = Lineage.of((0, 0), (1, 3))
NONE = (-1, -1, -1)


@dataclass(frozen=True)
class Broker:
    """The broker's answer: offset, leader epoch, timestamp."""

    offset: int = -1
    leader_epoch: int = -1
    timestamp: int = -1
    error_code: int = 0


@pytest.fixture
def world() -> GatewayWorld:
    """Offsets 0 to 5, with a new epoch from 3 on; the store has 0 to 3, the local log 4 and 5."""
    world = GatewayWorld()
    world.remote.claim(LINEAGE)
    world.remote.store(
        single_records((0, 0, 0), (1, 0, 10), (2, 0, 20), (3, 1, 30)), lineage=LINEAGE
    )
    world.remote.advance_log_start(0)
    world.trim(4, LINEAGE)
    return world


def ask(
    world: GatewayWorld, timestamp: int, broker: Broker, *, version: int = 11
) -> ListOffsetsPartitionResponse:
    request = ListOffsetsRequest(
        topics=(
            ListOffsetsTopic(
                name=TIP.topic,
                partitions=(
                    ListOffsetsPartition(partition_index=TIP.partition, timestamp=timestamp),
                ),
            ),
        )
    )
    answer = ListOffsetsPartitionResponse(
        partition_index=TIP.partition,
        error_code=broker.error_code,
        timestamp=broker.timestamp,
        offset=broker.offset,
        leader_epoch=broker.leader_epoch,
    )
    response = ListOffsetsResponse(
        topics=(ListOffsetsTopicResponse(name=TIP.topic, partitions=(answer,)),)
    )
    exchange = Exchange(version=version, request=request, response=response)
    rewritten = rewrite_list_offsets(exchange, world.context())
    assert encode(rewritten, version, flexible=version in LIST_OFFSETS.flexible)
    return rewritten.topics[0].partitions[0]


def located(answer: ListOffsetsPartitionResponse) -> tuple[int, int, int]:
    assert answer.error_code == ErrorCode.NONE
    return answer.offset, answer.leader_epoch, answer.timestamp


@pytest.mark.parametrize(
    ("timestamp", "broker", "expected"),
    [
        (-2, Broker(4, 1), (0, 0, -1)),
        (-4, Broker(4, 1), (4, 1, -1)),
        (-5, Broker(), (3, 1, -1)),
        (-6, Broker(4, 1), (4, 1, -1)),
        (-1, Broker(6, 1), (6, 1, -1)),
    ],
)
def test_offset_when_asked_by_name_then_is_that_of_both_tiers(
    world: GatewayWorld, timestamp: int, broker: Broker, expected: tuple[int, int, int]
) -> None:
    """Scenario 42."""
    assert located(ask(world, timestamp, broker)) == expected


@pytest.mark.parametrize(
    ("since_ms", "broker", "expected"),
    [
        (0, Broker(4, 1, BASE_MS + 40), (0, 0, BASE_MS)),
        (BASE_MS + 20, Broker(4, 1, BASE_MS + 40), (2, 0, BASE_MS + 20)),
        (BASE_MS + 25, Broker(4, 1, BASE_MS + 40), (3, 1, BASE_MS + 30)),
        (BASE_MS + 50, Broker(5, 1, BASE_MS + 50), (5, 1, BASE_MS + 50)),
        (BASE_MS + 99, Broker(), NONE),
    ],
)
def test_time_when_asked_then_the_first_record_of_both_tiers(
    world: GatewayWorld, since_ms: int, broker: Broker, expected: tuple[int, int, int]
) -> None:
    """Scenario 42: times before, at, between and after records, in either tier."""
    assert located(ask(world, since_ms, broker)) == expected


def test_time_when_only_the_local_log_has_it_then_nothing_is_fetched(world: GatewayWorld) -> None:
    """Scenario 44."""
    before = world.remote.executor.submitted_count

    ask(world, BASE_MS + 50, Broker(5, 1, BASE_MS + 50))

    assert world.remote.executor.submitted_count == before


def test_earliest_when_records_were_deleted_then_follows_at_once(world: GatewayWorld) -> None:
    """Scenario 43: records below 3 are deleted, then those below 4.

    The end of the stored log has no epoch if it is below the log start.
    """
    world.request_log_start(3)
    after_three = [located(ask(world, question, Broker(4, 1))) for question in (-2, -4)]
    world.request_log_start(4)
    after_four = [located(ask(world, question, Broker(4, 1))) for question in (-2, -4, -5)]

    assert after_three == [(3, 1, -1), (4, 1, -1)]
    assert after_four == [(4, 1, -1), (4, 1, -1), (3, -1, -1)]


def test_time_when_the_segment_is_of_another_history_then_the_next_valid_answers(
    world: GatewayWorld,
) -> None:
    """Scenario 45."""
    other = Lineage.of((5, 0))
    world.remote.store(single_records((0, 5, 20), (1, 5, 21)), lineage=other)

    found = ask(world, BASE_MS + 20, Broker(4, 1, BASE_MS + 40))

    assert located(found) == (2, 0, BASE_MS + 20)


def test_max_timestamp_when_it_is_stored_then_is_found(world: GatewayWorld) -> None:
    """Scenario 46, KAFKA-17552."""
    found = ask(world, -3, Broker(5, 1, BASE_MS + 25))

    assert located(found) == (3, 1, BASE_MS + 30)


@pytest.mark.parametrize(
    ("broker", "expected"),
    [
        (Broker(5, 1, BASE_MS + 31), (5, 1, BASE_MS + 31)),
        (Broker(5, 1, BASE_MS + 30), (3, 1, BASE_MS + 30)),
        (Broker(3, 1, BASE_MS + 30), (3, 1, BASE_MS + 30)),
        (Broker(), (3, 1, BASE_MS + 30)),
    ],
)
def test_max_timestamp_when_in_either_tier_then_the_greater_and_of_equals_the_first(
    world: GatewayWorld, broker: Broker, expected: tuple[int, int, int]
) -> None:
    """Scenario 46."""
    assert located(ask(world, -3, broker)) == expected


def test_max_timestamp_when_the_greatest_is_below_the_log_start_then_it_is_passed_over() -> None:
    world = GatewayWorld()
    world.remote.claim()
    world.remote.store(single_records((0, 0, 90), (1, 0, 10), (2, 0, 30), (3, 0, 30)))
    world.remote.advance_log_start(1)

    assert located(ask(world, -3, Broker())) == (2, 0, BASE_MS + 30)


def test_question_when_of_an_old_version_then_carries_no_epoch(world: GatewayWorld) -> None:
    assert located(ask(world, -2, Broker(4), version=1)) == (0, -1, -1)


def test_error_when_of_the_brokers_then_stays(world: GatewayWorld) -> None:
    """Scenario 49: a fenced client gets only the broker's error."""
    found = ask(world, -2, Broker(error_code=ErrorCode.FENCED_LEADER_EPOCH))

    assert (found.error_code, found.offset) == (ErrorCode.FENCED_LEADER_EPOCH, -1)


def test_answer_when_the_metadata_can_not_be_followed_then_is_an_error(
    world: GatewayWorld,
) -> None:
    """R15, scenario 35: a gateway that lags does not return a log start."""
    world.topic.is_cut = True

    assert ask(world, -2, Broker(4, 1)).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert ask(world, BASE_MS, Broker(4, 1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_answer_when_the_metadata_can_be_followed_again_after_a_moment_then_is_whole(
    world: GatewayWorld,
) -> None:
    """R15: for example while a leader of the metadata topic moves."""
    world.topic.failures_left = 20

    assert ask(world, -2, Broker(4, 1)).offset == 0


def test_pending_upload_when_nothing_is_stored_then_is_the_log_start() -> None:
    """KIP-1023."""
    world = GatewayWorld()
    world.remote.claim()
    world.remote.advance_log_start(2)

    assert located(ask(world, -6, Broker(0, 0)))[0] == 2
    assert located(ask(world, -5, Broker())) == NONE


def test_pending_upload_when_the_metadata_has_no_log_start_then_is_the_brokers() -> None:
    """KIP-1023: for example just after the topic was tiered."""
    world = GatewayWorld()

    assert located(ask(world, -6, Broker(3, 1))) == (3, 1, -1)


@pytest.mark.parametrize("timestamp", [-1, -2, -5, 0])
def test_other_timestamps_when_requested_then_the_clients_frame_passes_as_it_is(
    world: GatewayWorld, timestamp: int
) -> None:
    row = ListOffsetsPartition(partition_index=TIP.partition, timestamp=timestamp)
    request = ListOffsetsRequest(topics=(ListOffsetsTopic(name=TIP.topic, partitions=(row,)),))

    assert request_log_start(11, request, world.context()) is None


@pytest.mark.parametrize(("version", "sent"), [(10, [-6, -1]), (11, [-2, -1])])
def test_pending_upload_when_requested_then_the_broker_is_asked_for_its_log_start(
    world: GatewayWorld, version: int, sent: list[int]
) -> None:
    """A version that does not have it passes, so that the broker rejects it."""
    row = ListOffsetsPartition(partition_index=TIP.partition, timestamp=-6)
    other = ListOffsetsPartition(partition_index=TIP.partition + 100, timestamp=-1)
    topic = ListOffsetsTopic(name=TIP.topic, partitions=(row, other))

    request = ListOffsetsRequest(topics=(topic,))

    changed = request_log_start(version, request, world.context()) or request

    assert [each.timestamp for each in changed.topics[0].partitions] == sent


def test_request_when_it_asks_nothing_of_the_store_then_passes(world: GatewayWorld) -> None:
    def concerned(timestamp: int, topic: str = TIP.topic) -> bool:
        partition = ListOffsetsPartition(partition_index=TIP.partition, timestamp=timestamp)
        request = ListOffsetsRequest(
            topics=(ListOffsetsTopic(name=topic, partitions=(partition,)),)
        )
        return can_change_list_offsets(request, world.context())

    assert [concerned(question) for question in (-1, -4, -99)] == [False, False, False]
    assert [concerned(question) for question in (-2, -3, -5, -6, 0)] == [True] * 5
    assert not concerned(-2, "other")
    world.topics = TieredTopics()
    assert not concerned(-2)
