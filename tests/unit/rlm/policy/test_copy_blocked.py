"""Why the oldest segment that is not stored is not copied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.candidates import copy_blocked, copy_candidates
from rlm.policy.view import AttemptFailure, PartitionView
from rlmm.events.pause import PausableTask
from rlmm.events.policy import PolicyState
from rlmm.positions import MetadataPosition
from rlmm.spi import NewerRecord
from rlmm.state.partition_state import RemotePartitionDeleteState
from tests.unit.rlm.policy.views import THEM, Given, policy, stored_up_to

FAILING = AttemptFailure(error="no space (name=a)", cause="no space", is_corrupt=False, attempts=3)
CORRUPT = AttemptFailure(error="bad CRC", cause="bad CRC", is_corrupt=True, attempts=1)


NEWER = NewerRecord(needs_fold_version=9, position=MetadataPosition(partition=3, offset=7))
DELETED = replace(Given().view().state, deletion=RemotePartitionDeleteState.DELETE_PARTITION_MARKED)


def reason(view: PartitionView) -> str | None:
    blocked = copy_blocked(view)
    return None if blocked is None else blocked.reason


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
        (replace(Given().view(), copy_failure=replace(FAILING, is_final=True)), "stopped"),
        (replace(Given().view(), is_store_reachable=False), "store_unreachable"),
        (Given(newer=NEWER).view(), "newer_record"),
        (replace(Given().view(), state=DELETED), "partition_deleted"),
    ],
)
def test_copies_when_blocked_then_the_reason_is_reported(
    view: PartitionView, expected: str | None
) -> None:
    """Scenario 93: lag and its reason come from local state, so an outage hides neither."""
    assert reason(view) == expected


@pytest.mark.parametrize(
    "view", [Given(newer=NEWER).view(), replace(Given().view(), state=DELETED)]
)
def test_candidates_when_copies_are_forbidden_then_none(view: PartitionView) -> None:
    """A record of a newer version may forbid copies, and a deleted partition needs none."""
    assert copy_candidates(view) == ()


def test_copies_when_failing_then_the_oldest_segment_is_named() -> None:
    blocked = copy_blocked(replace(Given(segments=stored_up_to(300)).view(), copy_failure=FAILING))

    assert blocked is not None
    assert blocked.values == {
        "base_offset": 300,
        "attempts": 3,
        "cause": "no space",
        "error": "no space (name=a)",
    }


def test_candidates_when_the_last_attempt_failed_then_are_tried_again() -> None:
    """Pauses between attempts are not the plan's decision."""
    failing = replace(Given().view(), copy_failure=FAILING)

    assert copy_candidates(failing) == copy_candidates(Given().view())
