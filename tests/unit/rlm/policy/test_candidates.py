from __future__ import annotations

from uuid import UUID

from rlm.policy.candidates import copy_candidates, lag
from rlmm.events.policy import PolicyState
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState
from tests.unit.rlm.policy.views import THEM, Given, local, policy, remote, stored_up_to


def _bases(given: Given) -> list[int]:
    return [s.offsets.start_offset for s in copy_candidates(given.view())]


def test_candidates_when_three_rolled_and_one_active_then_three_in_order() -> None:
    """Scenario 1."""
    given = Given(rolled=(local(0, 10), local(10, 20), local(20, 30)), high_watermark=35)
    assert _bases(given) == [0, 10, 20]


def test_candidates_when_next_base_is_above_last_stable_offset_then_segment_waits() -> None:
    """Scenario 2: an open transaction blocks the segment and all after it."""
    assert _bases(Given(last_stable_offset=250)) == [0, 100]


def test_candidates_when_transaction_ended_then_segment_is_copied() -> None:
    """Scenario 2: the segment's end is at the last stable offset."""
    assert _bases(Given(last_stable_offset=300)) == [0, 100, 200]


def test_candidates_when_high_watermark_is_inside_a_segment_then_it_waits() -> None:
    """Scenario 3."""
    assert _bases(Given(high_watermark=199)) == [0]


def test_candidates_when_some_are_stored_then_only_the_rest() -> None:
    assert _bases(Given(segments=stored_up_to(700))) == [700, 800, 900]


def test_candidates_when_a_hole_is_in_the_store_then_copying_continues_from_the_hole() -> None:
    """D11: records above a hole do not count as stored."""
    segments = (remote(0, 100), remote(200, 300))
    assert _bases(Given(segments=segments))[:2] == [100, 200]


def test_candidates_when_log_start_is_inside_the_first_then_it_begins_there() -> None:
    """Scenario 4: segments wholly below the log start are not copied."""
    given = Given(local_start=150, checkpoint=Lineage.of((0, 150)), stored_lineage=Lineage())
    assert _bases(given)[0] == 100


def test_candidates_when_messages_are_older_than_epochs_then_none() -> None:
    """Otherwise the manager would copy such segments again in each cycle."""
    given = Given(checkpoint=Lineage.of((0, 150)), stored_lineage=Lineage())
    assert _bases(given) == []


def test_candidates_when_only_started_then_segment_is_copied_again() -> None:
    """Scenario 10, 31: an attempt that did not finish stores nothing."""
    started = remote(0, 100, state=SegmentState.COPY_SEGMENT_STARTED)
    assert _bases(Given(segments=(started,)))[0] == 0


def test_candidates_when_stored_in_a_lost_epoch_then_copied_from_the_common_prefix() -> None:
    """Scenario 7: an unclean election cut epoch 1 at offset 150."""
    written = Lineage.of((0, 0), (1, 100))
    current = Lineage.of((0, 0), (1, 100), (2, 150))
    segments = (remote(0, 100), remote(100, 200, epochs=written, writer=THEM))
    given = Given(segments=segments, checkpoint=current, stored_lineage=written)
    assert _bases(given)[0] == 150


def test_candidates_when_claim_is_anothers_then_none() -> None:
    """R7."""
    assert _bases(Given(owner=THEM)) == []


def test_candidates_when_disabled_then_none() -> None:
    assert _bases(Given(policy=policy(state=PolicyState.DISABLED))) == []


def test_candidates_when_disabling_then_copying_continues() -> None:
    """R9: a topic is copied to its end before its retention is restored."""
    assert _bases(Given(policy=policy(state=PolicyState.DISABLING)))[0] == 0


def test_lag_when_waiting_for_last_stable_offset_then_still_counted() -> None:
    measured = lag(Given(last_stable_offset=0, segments=stored_up_to(400)).view())
    assert (measured.segments, measured.bytes) == (6, 6000)


def test_lag_when_all_rolled_are_stored_then_zero() -> None:
    """Scenario 1: the active segment never counts."""
    assert lag(Given(segments=stored_up_to(1000)).view()).segments == 0


def test_candidates_when_same_range_is_stored_twice_then_counted_once() -> None:
    """Scenario 6."""
    segments = (*stored_up_to(1000), remote(0, 100, writer=THEM, number=1))
    assert _bases(Given(segments=segments, in_flight=frozenset({UUID(int=1)}))) == []
