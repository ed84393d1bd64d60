"""The output of `rlm explain` if the leader's manager does not answer."""

from __future__ import annotations

from contextlib import closing
from uuid import UUID

import pytest

from rlm.cli.invocation.managers import live_managers
from rlm.cli.reading.explain import explained_by_leader
from rlm.status.explanation import ContainingSegment, LocalCopy, OffsetExplanation
from rlmm.state.gaps import GapReason
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import gap
from tests.unit.rlm.cli.stated_managers import TIP, Cluster, StatedView

EXPLANATION = OffsetExplanation(
    offset=5,
    location="gap",
    leader_epoch=None,
    log_start_offset=0,
    local_start_offset=7,
    high_watermark=9,
    segments=(
        ContainingSegment(
            segment_id=UUID(int=1),
            state="COPY_SEGMENT_FINISHED",
            offsets=OffsetRange(start_offset=4, end_offset=6),
            readable=None,
            size_bytes=10,
            max_timestamp_ms=8,
            state_since_ms=9,
            is_dead_lettered=True,
            object_keys=("4.log", "4.meta"),
        ),
    ),
    gap=gap(5, 6, reason=GapReason.ACCEPTED_LOSS),
    local_copy=LocalCopy(
        state="blocked",
        reason="young",
        offsets=OffsetRange(start_offset=7, end_offset=8),
        values={"age_ms": 1},
    ),
)
UNHEARD = "127.0.0.1:1"  # nobody listens there


@pytest.mark.parametrize(
    ("leader", "explained"),
    [
        (None, "the partition has no leader"),
        (1, "the manager cannot be reached: Connection refused (broker_id=1, "),
        (2, "no live manager is registered for broker 2, which leads the partition: start"),
    ],
)
def test_explanation_when_the_leaders_manager_says_nothing_then_why_and_what_to_do(
    leader: int | None, explained: str
) -> None:
    """The command must say if the leader has no live manager."""
    cluster = Cluster()
    cluster.register(1, UNHEARD)
    managers = live_managers(cluster.metadata, cluster.clock)
    with closing(cluster.client()) as client:
        found = explained_by_leader(client, managers, leader, TIP, 5)

    assert isinstance(found, str)
    assert explained in found


def test_explanation_when_the_leaders_manager_answers_then_its_answer(
    view: StatedView, address: str
) -> None:
    cluster = Cluster()
    cluster.register(1, address)
    view.explained = EXPLANATION
    managers = live_managers(cluster.metadata, cluster.clock)
    with closing(cluster.client()) as client:
        found = explained_by_leader(client, managers, 1, TIP, 5)

    assert found == EXPLANATION
