"""Which fetches probably need the store."""

from __future__ import annotations

from rlm.gateway.fetch.local_starts import LocalStarts
from tests.remote_world import TIP


def test_out_of_range_when_above_the_end_then_others_are_not_expected_to_be_remote() -> None:
    """A client far above the log's end proves nothing about other offsets."""
    starts = LocalStarts()
    starts.record_missing(TIP, 1_000)

    assert starts.is_doubted(TIP, 1_000)
    assert not starts.is_doubted(TIP, 999)
    assert starts.at_least(TIP) == 0


def test_out_of_range_when_of_two_clients_then_both_are_doubted() -> None:
    starts = LocalStarts()
    starts.record_missing(TIP, 5)
    starts.record_missing(TIP, 1_000)
    starts.record_missing(TIP, 5)

    assert starts.is_doubted(TIP, 5)
    assert starts.is_doubted(TIP, 1_000)


def test_out_of_range_when_the_start_is_learned_then_what_lies_above_stays_doubted() -> None:
    """Each fetch of trimmed offsets reports the start, which proves nothing about the end."""
    starts = LocalStarts()
    starts.record_missing(TIP, 1_000)
    starts.record_start(TIP, 40)

    assert starts.is_doubted(TIP, 1_000)
    assert starts.at_least(TIP) == 40


def test_out_of_range_when_the_broker_has_it_later_then_it_is_not_doubted_any_more() -> None:
    starts = LocalStarts()
    starts.record_missing(TIP, 1_000)
    starts.record_missing(TIP, 1_001)
    starts.record_found(TIP, 1_000)

    assert not starts.is_doubted(TIP, 1_000)
    assert starts.is_doubted(TIP, 1_001)


def test_out_of_range_when_of_many_then_the_latest_are_remembered() -> None:
    starts = LocalStarts(limit_count=2)
    for offset in (1_000, 1_001, 1_000, 1_002):
        starts.record_missing(TIP, offset)

    assert [starts.is_doubted(TIP, offset) for offset in (1_000, 1_001, 1_002)] == [
        True,
        False,
        True,
    ]
