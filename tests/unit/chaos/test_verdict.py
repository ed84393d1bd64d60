"""A chaos run's verdict counts the wrong records of a reader."""

from __future__ import annotations

from tests.chaos.log_reading import PartitionLog, Place
from tests.chaos.scrub import Scrubbed
from tests.chaos.verdict import Readings, Verdict, judge
from tests.chaos.writers import Ledger

PLACE: Place = ("orders", 0)


def log() -> PartitionLog:
    """Return the log of a partition with offsets 0 to 9."""
    digests = {offset: b"%d" % offset for offset in range(10)}
    return PartitionLog(digests=digests, next_offset=10)


def verdict_of(found: PartitionLog, ledger: Ledger | None = None) -> Verdict:
    return judge(
        seconds=1,
        faults={},
        ledger=ledger or Ledger(),
        witnessed=Readings(everything={PLACE: log()}, committed={PLACE: log()}),
        read=Readings(everything={PLACE: log()}, committed={PLACE: found}),
        local_starts={PLACE: 4},
        scrubbed=Scrubbed(segments_count=1, streamed_count=1, objects_count=2, problems=()),
    )


def test_verdict_when_all_was_read_then_is_good() -> None:
    """Scenario 103."""
    verdict = verdict_of(log())

    assert verdict.is_good
    assert (verdict.records_count, verdict.from_store_count) == (10, 4)


def test_verdict_when_a_record_is_missing_then_is_lost() -> None:
    """Scenario 103."""
    found = log()
    del found.digests[3]

    verdict = verdict_of(found)

    assert (verdict.lost_count, verdict.is_good) == (1, False)


def test_verdict_when_an_offset_came_twice_or_changed_then_is_counted() -> None:
    """Scenario 103."""
    found = log()
    found.digests[3] = b"other"
    found.repeated_count = 2

    verdict = verdict_of(found)

    assert (verdict.changed_count, verdict.duplicated_count) == (1, 2)


def test_verdict_when_acknowledged_are_missing_or_aborted_are_there_then_is_counted() -> None:
    """Scenario 103."""
    ledger = Ledger()
    ledger.keep([(PLACE, 3, b"acknowledged"), (PLACE, 4, b"4")])
    ledger.give_up([(PLACE, 5, b"5"), (PLACE, 6, b"aborted and gone")])

    verdict = verdict_of(log(), ledger)

    assert (verdict.lost_count, verdict.aborted_seen_count) == (1, 1)
