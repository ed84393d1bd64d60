"""Why the oldest segment that is not stored is not copied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.candidates import copy_candidates, copy_held
from rlm.policy.view import CopyFailure, PartitionView
from rlmm.events import PausableTask, PolicyState
from tests.unit.rlm.policy.views import THEM, Given, policy, stored_up_to

FAILING = CopyFailure(error="no space", corrupt=False, attempts=3)
CORRUPT = CopyFailure(error="bad CRC", corrupt=True, attempts=1)


def reason(view: PartitionView) -> str | None:
    held = copy_held(view)
    return None if held is None else held.reason


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (Given().view(), None),
        (Given(segments=stored_up_to(1000), owner=THEM).view(), None),
        (Given(owner=THEM).view(), "not_owner"),
        (Given(policy=policy(state=PolicyState.DISABLED)).view(), "policy_not_active"),
        (Given(last_stable_offset=50).view(), "not_stable_yet"),
        (Given(high_watermark=99).view(), "not_stable_yet"),
        (replace(Given().view(), paused=frozenset({PausableTask.COPY})), "paused"),
        (replace(Given().view(), paused=frozenset({PausableTask.TRIM})), None),
        (replace(Given().view(), untierable="cleanup.policy=compact"), "unsupported_topic"),
        (replace(Given().view(), copy_failure=FAILING), "failing"),
        (replace(Given().view(), copy_failure=CORRUPT), "corrupt"),
        (replace(Given().view(), store_reachable=False), "store_unreachable"),
    ],
)
def test_copies_when_held_then_the_reason_is_told(
    view: PartitionView, expected: str | None
) -> None:
    """Scenario 93: lag and its reason come from local state, so an outage hides neither."""
    assert reason(view) == expected


def test_candidates_when_the_last_attempt_failed_then_are_tried_again() -> None:
    """Pauses between attempts are for who makes them."""
    failing = replace(Given().view(), copy_failure=FAILING)

    assert copy_candidates(failing) == copy_candidates(Given().view())
