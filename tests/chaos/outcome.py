"""The result of a chaos run: the records read through gateways, compared with the brokers' logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.chaos.log_reading import Partition, PartitionLog
from tests.chaos.scrub import Scrubbed
from tests.chaos.writers import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The logs by partition, from one read of all records and one of the committed records."""

    everything: Mapping[Partition, PartitionLog]
    committed: Mapping[Partition, PartitionLog]


@dataclass(kw_only=True)
class ChaosOutcome:
    """The counts of a run. From `lost_count` on, all must be 0, and `problems` empty."""

    seconds: int
    records_count: int
    acknowledged_count: int
    aborted_count: int
    from_store_count: int
    faults: Mapping[str, int]
    segments_count: int
    streamed_count: int
    witness_skipped_count: int = 0
    lost_count: int = 0
    duplicated_count: int = 0
    invented_count: int = 0
    changed_count: int = 0
    aborted_seen_count: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        bad = (
            self.lost_count,
            self.duplicated_count,
            self.invented_count,
            self.changed_count,
            self.aborted_seen_count,
            len(self.problems),
        )
        return not any(bad)


def check_readings(
    *,
    seconds: int,
    faults: Mapping[str, int],
    ledger: Ledger,
    witnessed: Readings,
    read: Readings,
    local_starts: Mapping[Partition, int],
    scrubbed: Scrubbed,
) -> ChaosOutcome:
    """Compare the witness's records with those that `read` got through gateways."""
    outcome = ChaosOutcome(
        seconds=seconds,
        records_count=sum(len(log.digests) for log in read.everything.values()),
        acknowledged_count=ledger.kept_count,
        aborted_count=ledger.aborted_count,
        from_store_count=sum(
            offset < local_starts[partition]
            for partition, log in read.everything.items()
            for offset in log.digests
        ),
        faults=dict(faults),
        segments_count=scrubbed.segments_count,
        streamed_count=scrubbed.streamed_count,
        problems=list(scrubbed.problems),
    )
    for expected, found in (
        (witnessed.everything, read.everything),
        (witnessed.committed, read.committed),
    ):
        for partition, log in expected.items():
            _compare(outcome, partition, log, found[partition])
    for partition, log in read.committed.items():
        _compare_with_ledger(outcome, partition, log, ledger)
    return outcome


def _compare(
    outcome: ChaosOutcome, partition: Partition, expected: PartitionLog, found: PartitionLog
) -> None:
    missing = expected.digests.keys() - found.digests.keys()
    # The witness does not know records that it was too slow to read.
    invented = () if expected.skipped_count else found.digests.keys() - expected.digests.keys()
    changed = [
        o
        for o in expected.digests.keys() & found.digests.keys()
        if expected.digests[o] != found.digests[o]
    ]
    outcome.witness_skipped_count += expected.skipped_count
    outcome.lost_count += len(missing)
    outcome.invented_count += len(invented)
    outcome.changed_count += len(changed)
    outcome.duplicated_count += found.repeated_count
    for name, offsets in (("lost", missing), ("invented", invented), ("changed", changed)):
        if offsets:
            outcome.problems.append(f"{partition}: {name} from {min(offsets)} to {max(offsets)}")
    if found.skipped_count:
        outcome.problems.append(f"{partition}: out of range {found.skipped_count} times")


def _compare_with_ledger(
    outcome: ChaosOutcome, partition: Partition, found: PartitionLog, ledger: Ledger
) -> None:
    kept = ledger.kept[partition].items()
    lost = [offset for offset, digest in kept if found.digests.get(offset) != digest]
    seen = [o for o, digest in ledger.aborted[partition].items() if found.digests.get(o) == digest]
    outcome.lost_count += len(lost)
    outcome.aborted_seen_count += len(seen)
    if lost:
        outcome.problems.append(f"{partition}: acknowledged, lost: {min(lost)} to {max(lost)}")
