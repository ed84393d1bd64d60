"""Only segments that an unclean election cut off are deleted after the grace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlm.policy.plan import plan
from rlm.policy.view import PolicyLimits
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState
from tests.unit.rlm.policy.views import HOUR_MS, NOW_MS, Given, remote

GRACE_MS = 24 * HOUR_MS
OLD = Lineage.of((0, 0), (1, 200))
# Epoch 3 began at 150: records of epoch 1, and of epoch 0 from 150 on, are not in this log.
LOG = Lineage.of((0, 0), (3, 150))
LIMITS = PolicyLimits(unreferenced_grace_ms=GRACE_MS, local_trim_min_age_ms=0)
LONG_AGO_MS = NOW_MS - 100 * GRACE_MS
CUT_OFF = tuple(remote(s, s + 100, epochs=OLD, changed_ms=LONG_AGO_MS) for s in (200, 300))
KEPT = tuple(remote(s, s + 100, epochs=OLD, changed_ms=LONG_AGO_MS) for s in (0, 100))


def successor(age_ms: int, *, state: SegmentState = SegmentState.COPY_SEGMENT_FINISHED) -> Given:
    """Return a segment of the present log that was stored this long ago."""
    stored = remote(150, 250, epochs=LOG, changed_ms=NOW_MS - age_ms, number=3, state=state)
    return Given(
        segments=(*KEPT, *CUT_OFF, stored),
        stored_lineage=LOG,
        checkpoint=LOG,
        limits=LIMITS,
        rolled=(),
    )


def deleted(given: Given) -> list[int]:
    return [d.record.metadata.offsets.start_offset for d in plan(given.view()).deletions]


def test_segments_when_cut_off_for_longer_than_the_grace_then_deleted() -> None:
    """R5, scenarios 7, 8: a segment that is partly in the log stays."""
    decided = plan(successor(GRACE_MS + 1).view()).deletions
    assert [d.record.metadata.offsets.start_offset for d in decided] == [200, 300]
    assert f"remote.unreferenced.grace.ms={GRACE_MS}" in decided[0].reason


@pytest.mark.parametrize("age_ms", [0, GRACE_MS])
def test_segments_when_cut_off_for_less_than_the_grace_then_kept(age_ms: int) -> None:
    """R5: the age of their records does not matter."""
    assert deleted(successor(age_ms)) == []


def test_segments_when_nothing_of_the_new_history_is_stored_then_kept() -> None:
    """R5: nobody knows when the election cut them off."""
    given = successor(GRACE_MS + 1)
    assert deleted(replace(given, segments=(*KEPT, *CUT_OFF))) == []


def test_segments_when_the_lineage_does_not_reach_back_to_them_then_kept() -> None:
    """R5: a checkpoint that trims have cut does not contradict the epochs that it lacks."""
    cut = Lineage.of((3, 400))
    given = replace(successor(GRACE_MS + 1), stored_lineage=cut, checkpoint=cut, local_start=400)
    stored = remote(400, 500, epochs=cut, changed_ms=LONG_AGO_MS, number=4)
    assert deleted(replace(given, segments=(*given.segments, stored))) == []


def test_segments_when_the_broker_has_lost_data_then_kept() -> None:
    """R5: `diverged` deletes nothing."""
    assert deleted(replace(successor(GRACE_MS + 1), high_watermark=200)) == []
