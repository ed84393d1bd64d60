"""When a dead letter is settled."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rlm.policy.request.dead_letters import LetterState, letter_state
from rlmm.dead_letters.dead_letter import DeadLetter
from rlmm.spi import MetadataPosition
from rsm.segment.metadata import SegmentState
from tests.unit.rlm.policy.views import remote

BEGUN = MetadataPosition(partition=2, offset=40)


def letter(begun: MetadataPosition | None = BEGUN) -> DeadLetter:
    return DeadLetter(
        metadata=remote(0, 100, state=SegmentState.DELETE_SEGMENT_STARTED).metadata,
        reason="locked",
        attempts=5,
        first_attempt_ms=0,
        last_attempt_ms=1,
        delete_started=begun,
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (SegmentState.DELETE_SEGMENT_STARTED, LetterState.OPEN),
        (SegmentState.DELETE_SEGMENT_FINISHED, LetterState.DONE),
        (SegmentState.COPY_SEGMENT_FINISHED, LetterState.UNKNOWN),
    ],
)
def test_letter_when_its_segment_is_known_then_its_state_decides(
    state: SegmentState, expected: LetterState
) -> None:
    """Scenario 73."""
    assert letter_state(letter(), remote(0, 100, state=state), {}) is expected


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ({2: 41}, LetterState.DONE),
        ({2: 40}, LetterState.UNKNOWN),
        ({1: 500}, LetterState.UNKNOWN),
        ({}, LetterState.UNKNOWN),
    ],
)
def test_letter_when_its_segment_is_gone_then_done_only_for_who_has_read_that_far(
    positions: Mapping[int, int], expected: LetterState
) -> None:
    """R22: a metadata topic that was lost proves nothing."""
    assert letter_state(letter(), None, positions) is expected


def test_letter_when_nothing_was_read_then_not_even_the_first_record_is_known() -> None:
    first = letter(begun=MetadataPosition(partition=2, offset=0))

    assert letter_state(first, None, {}) is LetterState.UNKNOWN
    assert letter_state(first, None, {2: 1}) is LetterState.DONE


def test_letter_when_it_names_no_record_then_absence_proves_nothing() -> None:
    """R22."""
    assert letter_state(letter(begun=None), None, {2: 41}) is LetterState.UNKNOWN
