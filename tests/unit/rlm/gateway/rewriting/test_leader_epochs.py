"""Where an epoch ends, by the stored lineage."""

from __future__ import annotations

import pytest

from rlm.gateway.model.rewrite import Exchange
from rlm.gateway.rewriting.leader_epochs import can_change_leader_epochs, rewrite_leader_epochs
from rlm.wire.api.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from rlm.wire.error_codes import ErrorCode
from rsm.segment.epochs import Lineage
from tests.remote_world import TIP
from tests.unit.rlm.gateway.gateway_world import GatewayWorld

LINEAGE = Lineage.of((0, 0), (2, 100), (3, 200), (5, 300))


def request(epoch: int, topic: str = TIP.topic) -> OffsetForLeaderEpochRequest:
    partition = OffsetForLeaderPartition(partition=TIP.partition, leader_epoch=epoch)
    return OffsetForLeaderEpochRequest(
        topics=(OffsetForLeaderTopic(topic=topic, partitions=(partition,)),)
    )


def ask(world: GatewayWorld, epoch: int, broker: EpochEndOffset) -> EpochEndOffset:
    result = OffsetForLeaderTopicResult(topic=TIP.topic, partitions=(broker,))
    exchange = Exchange(
        version=4,
        request=request(epoch),
        response=OffsetForLeaderEpochResponse(topics=(result,)),
    )
    return rewrite_leader_epochs(exchange, world.context()).topics[0].partitions[0]


def said(epoch: int, end_offset: int, error_code: int = 0) -> EpochEndOffset:
    return EpochEndOffset(
        partition=TIP.partition, leader_epoch=epoch, end_offset=end_offset, error_code=error_code
    )


@pytest.fixture
def world() -> GatewayWorld:
    """The local log begins in epoch 3, at 250."""
    world = GatewayWorld()
    world.remote.claim(LINEAGE)
    world.trim(250, LINEAGE)
    return world


@pytest.mark.parametrize(
    ("epoch", "broker", "expected"),
    [
        (0, said(0, 250), said(0, 100)),
        (1, said(1, 250), said(0, 100)),
        (2, said(2, 250), said(2, 200)),
        (3, said(3, 300), said(3, 300)),
        (4, said(3, 290), said(3, 290)),
        (5, said(5, 400), said(5, 400)),
        (9, said(-1, -1), said(-1, -1)),
        (-1, said(-1, -1), said(-1, -1)),
    ],
)
def test_end_when_of_an_epoch_that_was_trimmed_then_is_the_stored_lineages(
    world: GatewayWorld, epoch: int, broker: EpochEndOffset, expected: EpochEndOffset
) -> None:
    """R18, scenario 48: for trimmed epochs the broker answers wrongly, without an error."""
    assert ask(world, epoch, broker) == expected


@pytest.mark.parametrize(
    ("epoch", "broker", "expected"),
    [
        (2, said(2, 350), said(2, 200)),
        (1, said(1, 350), said(0, 100)),
        (3, said(3, 350), said(3, 300)),
        (5, said(5, 400), said(5, 400)),
    ],
)
def test_end_when_others_have_removed_what_the_broker_had_then_is_the_stored_lineages(
    epoch: int, broker: EpochEndOffset, expected: EpochEndOffset
) -> None:
    """R18: another program, or retention after tiering was disabled, moved the start to 350."""
    world = GatewayWorld()
    world.remote.claim(LINEAGE)
    world.trim(50, LINEAGE)

    assert ask(world, epoch, broker) == expected


def test_end_when_nothing_was_trimmed_then_is_the_brokers() -> None:
    """After an unclean election only the broker is right until the next claim."""
    world = GatewayWorld()
    world.remote.claim(LINEAGE)

    assert ask(world, 2, said(2, 150)) == said(2, 150)


@pytest.mark.parametrize(("epoch", "expected"), [(0, (0, 220)), (2, (2, 220)), (3, (3, 300))])
def test_end_when_the_log_start_has_passed_it_then_is_the_log_start(
    world: GatewayWorld, epoch: int, expected: tuple[int, int]
) -> None:
    """The answer is that of a broker whose lineage begins there."""
    world.request_log_start(220)

    assert ask(world, epoch, said(epoch, 250)) == said(*expected)


def test_error_when_of_the_brokers_then_stays(world: GatewayWorld) -> None:
    """Scenario 49."""
    fenced = said(-1, -1, ErrorCode.FENCED_LEADER_EPOCH)

    assert ask(world, 0, fenced) == fenced


def test_end_when_the_metadata_can_not_be_followed_then_is_an_error(world: GatewayWorld) -> None:
    """R15."""
    world.topic.is_cut = True

    assert ask(world, 0, said(0, 250)) == said(-1, -1, ErrorCode.KAFKA_STORAGE_ERROR)


def test_request_when_of_other_topics_then_passes(world: GatewayWorld) -> None:
    assert can_change_leader_epochs(request(0), world.context())
    assert not can_change_leader_epochs(request(0, "other"), world.context())
