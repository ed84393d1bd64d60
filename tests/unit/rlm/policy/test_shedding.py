"""What may be given up of a partition while the store takes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.shedding import sheddable
from rlm.policy.view import PartitionView
from rlmm.events import OutagePolicy
from tests.metadata_builder import anomaly
from tests.unit.rlm.policy.views import Given, local, policy, stored_up_to

STORED = stored_up_to(500)


def in_outage(given: Given) -> PartitionView:
    shed = policy(outage_policy=OutagePolicy.SHED_OLDEST)
    return replace(replace(given, policy=shed).view(), store_reachable=False)


def end_of(given: Given) -> int | None:
    found = sheddable(in_outage(given))
    return None if found is None else found.segments[-1].offsets.end_offset


def damaged(given: Given, number: int) -> Given:
    return replace(given, anomalies=(anomaly(STORED[number].metadata.segment_id.id.int),))


def test_sheddable_when_nothing_is_damaged_then_all_but_the_newest_may_go() -> None:
    assert end_of(Given(segments=STORED)) == 900


@pytest.mark.parametrize("number", [0, 2, 4])
def test_sheddable_when_a_stored_copy_is_damaged_then_the_brokers_stays(number: int) -> None:
    """It repairs the copy when the store is back."""
    assert end_of(damaged(Given(segments=STORED), number)) is None


def test_sheddable_when_the_damaged_copy_is_behind_a_hole_then_stops_before_it() -> None:
    """[200, 300) is not stored and may go; of [300, 400) the broker has the only whole copy."""
    with_hole = Given(segments=(*STORED[:2], *STORED[3:]))

    assert end_of(damaged(with_hole, 3)) == 300


def test_sheddable_when_one_file_holds_stored_and_unstored_records_then_damage_keeps_it() -> None:
    """A former leader rolled elsewhere."""
    rolled = (
        local(0, 550),
        local(550, 600),
        *(local(start, start + 100) for start in range(600, 1000, 100)),
    )
    given = Given(segments=STORED, rolled=rolled)

    assert end_of(given) == 900
    assert end_of(damaged(given, 4)) is None
