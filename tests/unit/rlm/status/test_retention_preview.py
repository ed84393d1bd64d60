"""The report of a dry run of retention."""

from __future__ import annotations

from dataclasses import replace

from rlm.policy.plan import plan
from rlm.status.retention_preview import retention_preview
from tests.unit.rlm.policy.views import HOUR_MS, Given, local, policy, remote

AGEING = Given(
    segments=tuple(
        remote(s, s + 100, age_ms=(10 - s // 100) * HOUR_MS) for s in range(0, 1000, 100)
    ),
    rolled=(local(900, 1000),),
    local_start=900,
)


def test_preview_when_segments_are_too_old_then_says_which_and_why() -> None:
    """Scenario 67."""
    view = replace(AGEING, policy=policy(retention_ms=7 * HOUR_MS + 1)).view()
    shown = retention_preview(view, plan(view)).to_json()
    assert (shown["log_start_offset"], shown["new_log_start_offset"]) == (0, 300)
    assert (shown["expiring_segments"], shown["expiring_bytes"]) == (3, 3000)
    assert str(shown["rule"]).startswith(f"retention.ms={7 * HOUR_MS + 1} measured=")


def test_preview_when_nothing_is_due_then_nothing_moves() -> None:
    view = AGEING.view()
    shown = retention_preview(view, plan(view)).to_json()
    assert shown["new_log_start_offset"] == shown["log_start_offset"] == 0
    assert (shown["expiring_segments"], shown["deletions"]) == (0, [])


def test_preview_when_segments_lie_below_the_log_start_then_lists_their_deletion() -> None:
    view = replace(AGEING, log_start=200).view()
    shown = retention_preview(view, plan(view)).to_json()
    assert shown["deletions"] == [
        {"base_offset": s, "end_offset": s + 100, "size_bytes": 1000, "rule": "below log start 200"}
        for s in (0, 100)
    ]
