"""The phases that the demo's scenarios share: create a topic, produce, wait for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from demo.disk import LocalLogFiles, local_files
from demo.failure import DemoFailedError
from demo.ledger import LoggedRecord, RecordLedger
from demo.narration import Narrator, Report, megabytes
from demo.producing import ProducedTotals, produce
from demo.records import varied_records
from demo.rlm_commands import RlmCommands
from demo.stage import DemoStage
from tests.services.waiting import wait_until

TOPIC = "demo"
_SEED = 20_240_607
_TIMEOUT_S = 60.0
_POLL_S = 0.25
_HOUR_MS = 3_600_000
_REPORT_EVERY = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSizes:
    """The amount of data, and the topic's segment size and number of partitions."""

    total_bytes: int = 220_000_000
    segment_bytes: int = 4 << 20
    partitions: int = 2


class Phases:
    """The phases of one demo with running services. A failed check raises DemoFailedError."""

    def __init__(self, stage: DemoStage, sizes: DemoSizes, narrator: Narrator) -> None:
        self.stage = stage
        self.narrator = narrator
        self.commands = RlmCommands(configuration=stage.rlm.configuration)
        self.ledger = RecordLedger(sizes.partitions)
        self.partitions = range(sizes.partitions)
        self._sizes = sizes

    def create_topic(self, *policy: str) -> None:
        """Create the topic, and tier it with options of `rlm topic set`."""
        self.stage.cluster.create_topic(
            TOPIC,
            partitions=self._sizes.partitions,
            config={
                "segment.bytes": str(self._sizes.segment_bytes),
                "message.timestamp.type": "CreateTime",
                "compression.type": "producer",
            },
        )
        self.commands.set_topic(TOPIC, *policy)
        command = " ".join(("rlm topic set", TOPIC, *policy))
        self.narrator.say(
            f"topic {TOPIC}: {self._sizes.partitions} partitions, segments of "
            f"{self._sizes.segment_bytes >> 20} MiB, tiered by `{command}`"
        )

    def produce(self) -> ProducedTotals:
        """Produce all records, and enter them in the ledger."""
        total = self._sizes.total_bytes
        start_ms = int(time.time() * 1000) - _HOUR_MS
        with self.narrator.step("producing with five codecs") as report:
            produced = produce(
                self.stage.cluster.bootstrap_servers,
                TOPIC,
                varied_records(seed=_SEED, partitions=self._sizes.partitions, start_ms=start_ms),
                total_bytes=total,
                ledger=self.ledger,
                on_progress=lambda size: report(size / total, megabytes(size)),
            )
        log_bytes = sum(files.log_bytes for files in self.local())
        self.narrator.say(
            f"{produced.records:,} records, {megabytes(produced.record_bytes)} of keys, values and "
            f"headers; {megabytes(log_bytes)} of record batches in the broker's log"
        )
        return produced

    def wait(self, title: str, done: Callable[[Report], bool]) -> None:
        """Wait until `done` returns true, for at most 60 s. `rlm run` must keep running."""
        with self.narrator.step(title) as report:

            def checked() -> bool:
                self.stage.rlm.require_running()
                return done(report)

            try:
                wait_until(checked, _TIMEOUT_S, title, interval_s=_POLL_S)
            except AssertionError as late:
                raise DemoFailedError(str(late)) from None

    def compare(self, partition: int, title: str, records: Iterable[LoggedRecord]) -> str:
        """Compare all records of a partition with the ledger; return their digest."""
        total = self.ledger.count(partition)
        with self.narrator.step(title) as report:
            digest = self.ledger.compare(partition, _reported(records, total, report))
        require_equal(f"the digest of partition {partition}", digest, self.ledger.digest(partition))
        return digest

    def local(self) -> list[LocalLogFiles]:
        """Return the local segments of each partition."""
        return [
            local_files(self.stage.partition_directory(TOPIC, partition))
            for partition in self.partitions
        ]


def require_equal(what: str, found: object, expected: object) -> None:
    """Raise DemoFailedError if two sources of one figure differ."""
    if found != expected:
        raise DemoFailedError(f"{what} is invalid: {found}, expected {expected}")


def _reported(
    records: Iterable[LoggedRecord], total: int, report: Report
) -> Iterator[LoggedRecord]:
    for count, record in enumerate(records, start=1):
        if count % _REPORT_EVERY == 0 or count == total:
            report(count / total, f"{count:,} records")
        yield record
