"""Sums over the rows of a status."""

from __future__ import annotations

from dataclasses import replace

from rlm.status.cluster_totals import StatusTotals, rows_by_topic, total
from tests.unit.rlm.status.status_rows import MIB, row, unreported


def test_totals_when_some_managers_are_silent_then_their_lag_is_unknown() -> None:
    rows = [
        row(lag_segments=2, lag_bytes=7, oldest_unstored_age_ms=5),
        row(partition=1, lag_segments=1, lag_bytes=1, oldest_unstored_age_ms=9),
        unreported(row("payments")),
        row("payments", 1, lag_segments=None, lag_bytes=None),
        replace(unreported(row("old")), policy_state="DISABLED"),
    ]

    assert total(rows) == StatusTotals(
        topics=3,
        partitions=5,
        stored_segments=20,
        stored_bytes=2000 * MIB,
        stored_overlap_bytes=0,
        lag_segments=3,
        lag_bytes=8,
        unknown_lag_partitions=2,
        oldest_unstored_age_ms=9,
    )


def test_totals_when_there_is_nothing_then_zero() -> None:
    found = total([])

    assert (found.topics, found.lag_bytes, found.oldest_unstored_age_ms) == (0, 0, None)


def test_rows_when_grouped_then_each_topic_has_its_own() -> None:
    rows = [row(), row(partition=1), row("payments")]

    assert rows_by_topic(rows) == {"orders": rows[:2], "payments": rows[2:]}
