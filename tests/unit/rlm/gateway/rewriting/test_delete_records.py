"""DeleteRecords through a gateway."""

from __future__ import annotations

import pytest

from rlm.gateway.model.rewrite import Exchange
from rlm.gateway.rewriting.delete_records import (
    HIGH_WATERMARK,
    can_change_delete_records,
    rewrite_delete_records,
)
from rlm.wire.api.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from rlm.wire.error_codes import ErrorCode
from tests.remote_world import TIP
from tests.unit.rlm.gateway.gateway_world import GatewayWorld


@pytest.fixture
def world() -> GatewayWorld:
    world = GatewayWorld()
    world.remote.claim()
    world.remote.advance_log_start(10)
    return world


def request(offset: int, topic: str = TIP.topic) -> DeleteRecordsRequest:
    partition = DeleteRecordsPartition(partition_index=TIP.partition, offset=offset)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(partition,)),))


def delete(
    world: GatewayWorld,
    offset: int,
    *,
    low_watermark: int = 0,
    error_code: int = 0,
    leader_epoch: int = 9,
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(
        partition_index=TIP.partition, low_watermark=low_watermark, error_code=error_code
    )
    topic = DeleteRecordsTopicResult(name=TIP.topic, partitions=(result,))
    exchange = Exchange(
        version=2,
        request=request(offset),
        response=DeleteRecordsResponse(topics=(topic,)),
        leader_epochs={(TIP.topic, TIP.partition): leader_epoch},
    )
    return rewrite_delete_records(exchange, world.context()).topics[0].partitions[0]


def requested(world: GatewayWorld) -> int | None:
    assert world.metadata.caught_up(TIP)
    return world.metadata.partition_state(TIP).log_start_requested_offset


def test_delete_when_below_the_local_start_then_is_requested_of_the_leader(
    world: GatewayWorld,
) -> None:
    """R13, scenario 75: the broker, whose log starts at 200, has nothing to do."""
    result = delete(world, 50, low_watermark=200)

    assert (result.error_code, result.low_watermark, requested(world)) == (0, 50, 50)


def test_delete_when_a_later_leader_took_it_then_is_of_its_epoch(world: GatewayWorld) -> None:
    """An unclean election may have cut off the old records: the request means the present ones."""
    delete(world, 50, leader_epoch=12)

    (asked,) = world.metadata.partition_state(TIP).log_start_requests
    assert asked == (50, 12)


def test_delete_when_asked_again_then_is_on_record_once(world: GatewayWorld) -> None:
    """R13: a client that deletes on a schedule must not fill the metadata topic."""
    first = delete(world, 50)
    end_offset = world.remote.log.end_offset(0)

    again, lower = delete(world, 50), delete(world, 40, low_watermark=200)

    assert first == again
    assert (lower.error_code, lower.low_watermark, requested(world)) == (0, 50, 50)
    assert world.remote.log.end_offset(0) == end_offset


def test_delete_when_to_the_high_watermark_then_what_the_broker_says_is_requested(
    world: GatewayWorld,
) -> None:
    result = delete(world, HIGH_WATERMARK, low_watermark=300)

    assert (result.low_watermark, requested(world)) == (300, 300)


def test_delete_when_below_what_is_gone_then_nothing_changes(world: GatewayWorld) -> None:
    result = delete(world, 5, low_watermark=200)

    assert (result.error_code, result.low_watermark, requested(world)) == (0, 10, None)


@pytest.mark.parametrize(
    "code", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
)
def test_delete_when_the_broker_refuses_then_nothing_is_requested(
    world: GatewayWorld, code: ErrorCode
) -> None:
    """R13: only after the broker has accepted the client's request."""
    result = delete(world, 50, error_code=code)

    assert (result.error_code, requested(world)) == (code, None)


def test_delete_when_a_follower_is_late_then_is_requested_all_the_same(
    world: GatewayWorld,
) -> None:
    """R2: after a timeout, the leader has deleted the records."""
    result = delete(world, 50, error_code=ErrorCode.REQUEST_TIMED_OUT)

    assert (result.error_code, requested(world)) == (ErrorCode.REQUEST_TIMED_OUT, 50)


def test_delete_when_it_can_not_be_recorded_then_the_client_hears_of_it(
    world: GatewayWorld,
) -> None:
    world.topic.is_cut = True

    assert delete(world, 50).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_request_when_of_other_topics_then_passes(world: GatewayWorld) -> None:
    assert can_change_delete_records(request(1), world.context())
    assert not can_change_delete_records(request(1, "other"), world.context())
