"""Plans in special cases: a pause, equal offsets, a log that has lost stored records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.plan import plan
from rlm.policy.view import PolicyLimits
from rlmm.events.pause import PausableTask
from rlmm.positions import MetadataPosition
from rsm.segment.metadata import SegmentState
from tests.unit.rlm.policy.peers.test_gateways import gateway
from tests.unit.rlm.policy.views import (
    HOUR_MS,
    Given,
    policy,
    remote,
    stored_up_to,
)

OLD = tuple(remote(s, s + 100, age_ms=3 * HOUR_MS) for s in range(0, 300, 100))
EXPIRING = Given(segments=OLD, policy=policy(retention_ms=2 * HOUR_MS))


def test_plan_when_deletion_is_paused_then_the_first_log_start_is_still_recorded() -> None:
    """Copies and trims wait, and nothing expires."""
    view = replace(
        Given(log_start=None, local_start=300).view(), paused=frozenset({PausableTask.DELETE})
    )

    decided = plan(view)

    assert decided.log_start is not None
    assert decided.log_start.offset == 300


def test_plan_when_deletion_is_paused_then_a_recorded_log_start_stays() -> None:
    view = replace(EXPIRING.view(), paused=frozenset({PausableTask.DELETE}))
    assert plan(view).log_start is None


@pytest.mark.parametrize(
    ("requested", "reason"),
    [
        (300, f"retention.ms={2 * HOUR_MS} measured={3 * HOUR_MS}"),
        (301, "records deleted by a client"),
    ],
)
def test_log_start_when_retention_reaches_the_requested_one_then_it_is_the_reason(
    requested: int, reason: str
) -> None:
    decided = plan(replace(EXPIRING, log_start_requested=requested).view()).log_start

    assert decided is not None
    assert (decided.offset, decided.reason) == (requested, reason)


def test_expiry_when_all_expires_in_one_cycle_then_nothing_is_blocked() -> None:
    given = replace(EXPIRING, limits=PolicyLimits(expiry_max_percent=100))
    assert plan(given.view()).expiry_blocked is None


@pytest.mark.parametrize(("high_watermark", "offset"), [(240, None), (250, None), (251, 251)])
def test_log_start_when_less_is_committed_than_requested_then_never_moves_back(
    high_watermark: int, offset: int | None
) -> None:
    """After an unclean election the log may end at, or below, where it starts."""
    given = Given(log_start=250, log_start_requested=300, high_watermark=high_watermark)

    decided = plan(given.view()).log_start

    assert (None if decided is None else decided.offset) == offset


@pytest.mark.parametrize(("high_watermark", "deleted"), [(1000, 2), (999, 0)])
def test_deletions_when_the_log_ends_below_what_is_stored_then_none_below_the_log_start(
    high_watermark: int, deleted: int
) -> None:
    """R5: a broker that lost data deletes nothing."""
    given = Given(
        segments=stored_up_to(1000),
        log_start=200,
        local_start=200,
        high_watermark=high_watermark,
    )
    assert len(plan(given.view()).deletions) == deleted


@pytest.mark.parametrize(
    ("state", "deleted"),
    [(SegmentState.COPY_SEGMENT_FINISHED, 1), (SegmentState.DELETE_SEGMENT_STARTED, 0)],
)
def test_deletion_when_a_gateway_lags_then_only_the_objects_wait(
    state: SegmentState, deleted: int
) -> None:
    """The gateway must know of the deletion before the objects are missing."""
    expired = remote(0, 100, state=state, changed_at=MetadataPosition(partition=3, offset=7))
    given = Given(segments=(expired,), log_start=100, local_start=100, gateways=(gateway((3, 7)),))

    assert len(plan(given.view()).deletions) == deleted
