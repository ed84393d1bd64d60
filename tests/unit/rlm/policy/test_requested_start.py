"""A client's DeleteRecords becomes the log start."""

from __future__ import annotations

import pytest

from rlm.policy.plan import plan
from tests.unit.rlm.policy.views import HOUR_MS, THEM, Given, policy, remote, stored_up_to


@pytest.mark.parametrize(
    ("given", "offset"),
    [
        (Given(log_start_requested=250), 250),
        (Given(log_start_requested=2_000), 1_050),
        (Given(log_start_requested=250, log_start=250), None),
        (Given(log_start_requested=250, owner=THEM), None),
        (Given(), None),
    ],
)
def test_log_start_when_requested_then_moves_there_but_not_above_what_is_committed(
    given: Given, offset: int | None
) -> None:
    """R13, scenario 75."""
    decided = plan(given.view()).log_start

    assert (None if decided is None else decided.offset) == offset


def test_log_start_when_retention_reaches_further_then_moves_there() -> None:
    old = tuple(remote(s, s + 100, age_ms=3 * HOUR_MS) for s in range(0, 500, 100))
    given = Given(
        segments=old,
        log_start_requested=250,
        policy=policy(retention_ms=2 * HOUR_MS),
    )

    decided = plan(given.view()).log_start

    assert decided is not None
    assert decided.offset == 500


def test_segment_when_it_holds_the_requested_start_then_stays() -> None:
    """Scenarios 75, 113: a segment with records above the requested start is kept."""
    given = Given(segments=stored_up_to(1000), log_start=250, local_start=250)

    deleted = [d.record.metadata.offsets.end_offset for d in plan(given.view()).deletions]

    assert deleted == [100, 200]
