"""A chaos run's outcome counts the wrong records of a reader."""

from __future__ import annotations

from tests.chaos.log_reading import Partition, PartitionLog
from tests.chaos.outcome import ChaosOutcome, Readings, check_readings
from tests.chaos.scrub import Scrubbed
from tests.chaos.writers import Ledger

PARTITION: Partition = ("orders", 0)


def log() -> PartitionLog:
    """Return the log of a partition with offsets 0 to 9."""
    digests = {offset: b"%d" % offset for offset in range(10)}
    return PartitionLog(digests=digests, next_offset=10)


def outcome_of(found: PartitionLog, ledger: Ledger | None = None) -> ChaosOutcome:
    return check_readings(
        seconds=1,
        faults={},
        ledger=ledger or Ledger(),
        witnessed=Readings(everything={PARTITION: log()}, committed={PARTITION: log()}),
        read=Readings(everything={PARTITION: log()}, committed={PARTITION: found}),
        local_starts={PARTITION: 4},
        scrubbed=Scrubbed(segments_count=1, streamed_count=1, objects_count=2, problems=()),
    )


def test_outcome_when_all_was_read_then_is_good() -> None:
    """Scenario 103."""
    outcome = outcome_of(log())

    assert outcome.is_good
    assert (outcome.records_count, outcome.from_store_count) == (10, 4)


def test_outcome_when_a_record_is_missing_then_is_lost() -> None:
    """Scenario 103."""
    found = log()
    del found.digests[3]

    outcome = outcome_of(found)

    assert (outcome.lost_count, outcome.is_good) == (1, False)


def test_outcome_when_an_offset_came_twice_or_changed_then_is_counted() -> None:
    """Scenario 103."""
    found = log()
    found.digests[3] = b"other"
    found.repeated_count = 2

    outcome = outcome_of(found)

    assert (outcome.changed_count, outcome.duplicated_count) == (1, 2)


def test_outcome_when_acknowledged_are_missing_or_aborted_are_there_then_is_counted() -> None:
    """Scenario 103."""
    ledger = Ledger()
    ledger.keep([(PARTITION, 3, b"acknowledged"), (PARTITION, 4, b"4")])
    ledger.give_up([(PARTITION, 5, b"5"), (PARTITION, 6, b"aborted and gone")])

    outcome = outcome_of(log(), ledger)

    assert (outcome.lost_count, outcome.aborted_seen_count) == (1, 1)
