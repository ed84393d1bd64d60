"""What an operator gives up with one damaged segment."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlm.policy.request.lost_segment import SegmentLoss, segment_loss
from rlmm.spi import SegmentRecord
from rlmm.state.partition_state import PartitionState
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import anomaly, log_starts
from tests.unit.rlm.policy.views import LINEAGE, remote, stored_up_to

STORED = stored_up_to(500)
LOST = STORED[2]
"""The segment at [200, 300)."""
NOTHING = SegmentLoss(lost=(), readable_in=(), on_broker=())


def loss_of(
    lost: SegmentRecord,
    *others: SegmentRecord,
    local_start: int = 400,
    log_start: int | None = 0,
    damaged: tuple[SegmentRecord, ...] = (),
) -> SegmentLoss:
    state = PartitionState(
        lineage=LINEAGE,
        log_starts=log_starts(log_start),
        anomalies=tuple(anomaly(each.metadata.segment_id.id.int) for each in damaged),
    )
    segments = [record.metadata for record in (*STORED, *others)]
    return segment_loss(lost.metadata.segment_id.id, state, segments, local_start)


def offsets(*spans: tuple[int, int]) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange(start_offset=start, end_offset=end) for start, end in spans)


def test_loss_when_nothing_else_holds_the_offsets_then_all_are_lost() -> None:
    expected = SegmentLoss(lost=offsets((200, 300)), readable_in=(), on_broker=())

    assert loss_of(LOST) == expected
    assert loss_of(LOST, damaged=(LOST,)) == expected


def test_loss_when_another_segment_holds_some_then_the_rest_is_lost() -> None:
    other = remote(150, 250, number=1)

    found = loss_of(LOST, other)

    assert (found.lost, found.readable_in) == (offsets((250, 300)), (other.metadata.segment_id,))


def test_loss_when_the_other_segment_is_reported_damaged_then_it_holds_nothing() -> None:
    other = remote(150, 250, number=1)

    assert loss_of(LOST, other, damaged=(other,)) == loss_of(LOST)


@pytest.mark.parametrize(
    ("local_start", "on_broker"),
    [(100, (200, 300)), (200, (200, 300)), (250, (250, 300)), (299, (299, 300)), (300, None)],
)
def test_loss_when_the_broker_has_some_of_it_then_says_what(
    local_start: int, on_broker: tuple[int, int] | None
) -> None:
    found = loss_of(LOST, local_start=local_start)

    assert found.lost == offsets((200, 300))
    assert found.on_broker == (() if on_broker is None else offsets(on_broker))


def test_loss_when_the_log_begins_inside_then_only_what_can_be_read_is_lost() -> None:
    below = remote(200, 250, number=1)

    found = loss_of(LOST, below, log_start=250)

    assert (found.lost, found.readable_in) == (offsets((250, 300)), ())


def test_loss_when_no_log_start_is_on_record_then_the_first_offset_is_lost_too() -> None:
    assert loss_of(STORED[0], log_start=None).lost == offsets((0, 100))


@pytest.mark.parametrize("log_start", [300, 301])
def test_loss_when_all_is_below_the_log_start_then_nothing_is_lost(log_start: int) -> None:
    assert loss_of(LOST, local_start=0, log_start=log_start) == NOTHING


def test_loss_when_no_reader_can_reach_the_segment_then_nothing_is_lost() -> None:
    state = PartitionState(lineage=LINEAGE, log_starts=log_starts(0))

    assert segment_loss(UUID(int=99), state, [LOST.metadata], 0) == NOTHING
