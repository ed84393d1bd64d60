"""When a dead letter is settled."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rlm.policy.request.dead_letters import DeadLetterState, dead_letter_state
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.positions import MetadataPosition
from rsm.segment.metadata import SegmentState
from tests.unit.rlm.policy.views import remote

STARTED = MetadataPosition(partition=2, offset=40)


def dead_letter(started: MetadataPosition | None = STARTED) -> DeadLetter:
    return DeadLetter(
        metadata=remote(0, 100, state=SegmentState.DELETE_SEGMENT_STARTED).metadata,
        reason="locked",
        attempts=5,
        first_attempt_ms=0,
        last_attempt_ms=1,
        delete_started=started,
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (SegmentState.DELETE_SEGMENT_STARTED, DeadLetterState.OPEN),
        (SegmentState.DELETE_SEGMENT_FINISHED, DeadLetterState.DONE),
        (SegmentState.COPY_SEGMENT_FINISHED, DeadLetterState.UNKNOWN),
    ],
)
def test_dead_letter_when_its_segment_is_known_then_its_state_decides(
    state: SegmentState, expected: DeadLetterState
) -> None:
    """Scenario 73."""
    assert dead_letter_state(dead_letter(), remote(0, 100, state=state), {}) is expected


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ({2: 41}, DeadLetterState.DONE),
        ({2: 40}, DeadLetterState.UNKNOWN),
        ({1: 500}, DeadLetterState.UNKNOWN),
        ({}, DeadLetterState.UNKNOWN),
    ],
)
def test_dead_letter_when_its_segment_is_gone_then_done_only_for_who_has_read_that_far(
    positions: Mapping[int, int], expected: DeadLetterState
) -> None:
    """R22: a recreated metadata topic proves nothing."""
    assert dead_letter_state(dead_letter(), None, positions) is expected


def test_dead_letter_when_nothing_was_read_then_not_even_the_first_record_is_known() -> None:
    first = dead_letter(started=MetadataPosition(partition=2, offset=0))

    assert dead_letter_state(first, None, {}) is DeadLetterState.UNKNOWN
    assert dead_letter_state(first, None, {2: 1}) is DeadLetterState.DONE


def test_dead_letter_when_it_names_no_record_then_absence_proves_nothing() -> None:
    """R22."""
    assert dead_letter_state(dead_letter(started=None), None, {2: 41}) is DeadLetterState.UNKNOWN
