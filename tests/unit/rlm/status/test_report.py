"""A manager's report of a partition that its broker leads."""

from __future__ import annotations

from rlm.policy.trim_gate import TrimDecision
from rlm.status.report import leader_report
from tests.unit.rlm.policy.views import HOUR_MS, SEGMENT_BYTES, Given, local, remote, stored_up_to


def test_report_when_segments_wait_for_their_copy_then_the_age_of_the_oldest() -> None:
    rolled = (local(0, 100, age_ms=3 * HOUR_MS), local(100, 200, age_ms=2 * HOUR_MS))
    view = Given(rolled=rolled, segments=stored_up_to(100)).view()

    assert leader_report(view, TrimDecision()).oldest_unstored_age_ms == 2 * HOUR_MS


def test_report_when_all_is_stored_then_no_age() -> None:
    view = Given(segments=stored_up_to(1000)).view()

    assert leader_report(view, TrimDecision()).oldest_unstored_age_ms is None


def test_report_when_a_merged_segment_overlaps_its_parts_then_their_bytes_count_once() -> None:
    """As in the status of the cluster, which does not ask the manager."""
    merged = remote(0, 400, number=9, size=4 * SEGMENT_BYTES)

    report = leader_report(Given(segments=(*stored_up_to(400), merged)).view(), TrimDecision())

    assert (report.remote_segments, report.remote_bytes) == (5, 4 * SEGMENT_BYTES)
    assert report.remote_overlap_bytes == 4 * SEGMENT_BYTES
    assert report.stored_end_offset == 400
