"""Runs the demo's phases: produce, store, trim, read back, and compare after each.

Local retention first equals total retention. The demo lowers it when all segments are stored, so
that the broker's disk usage falls visibly. Every figure has two sources: `rlm status`, and the
files of the broker and of the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from demo.consuming import consume
from demo.disk import LocalLogFiles, local_files, stored_log_sizes
from demo.failure import DemoFailedError
from demo.ledger import LoggedRecord, RecordLedger
from demo.narration import Narrator, Report, megabytes
from demo.outcome import DemoOutcome, PartitionOutcome, ReadBackSummary
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
    """The amount of data, and the topic's segment size and partitions."""

    total_bytes: int = 220_000_000
    segment_bytes: int = 4 << 20
    partitions: int = 2


class Scenario:
    """One demo with running services. Every phase raises DemoFailedError."""

    def __init__(self, stage: DemoStage, sizes: DemoSizes, narrator: Narrator) -> None:
        self._stage = stage
        self._sizes = sizes
        self._narrator = narrator
        self._commands = RlmCommands(configuration=stage.rlm.configuration)
        self._ledger = RecordLedger(sizes.partitions)

    def run(self) -> DemoOutcome:
        """Run all phases."""
        self._create_topic()
        produced = self._produce()
        before = self._wait_stored()
        after = self._trim(before)
        status = self._checked_status(after)
        read = [
            self._read(partition, status[partition]["local_start_offset"])
            for partition in self._partitions()
        ]
        return DemoOutcome(
            produced=produced,
            partitions=tuple(
                PartitionOutcome(
                    partition=partition,
                    produced=self._ledger.count(partition),
                    read=read[partition],
                    segments=status[partition]["remote_segments"],
                    local_start_offset=status[partition]["local_start_offset"],
                    remote_bytes=status[partition]["remote_bytes"],
                    local_bytes_before=before[partition].log_bytes,
                    local_bytes_after=after[partition].log_bytes,
                )
                for partition in self._partitions()
            ),
        )

    def _create_topic(self) -> None:
        self._stage.cluster.create_topic(
            TOPIC,
            partitions=self._sizes.partitions,
            config={
                "segment.bytes": str(self._sizes.segment_bytes),
                "message.timestamp.type": "CreateTime",
                "compression.type": "producer",
            },
        )
        self._commands.set_topic(TOPIC)
        self._narrator.say(
            f"topic {TOPIC}: {self._sizes.partitions} partitions, segments of "
            f"{self._sizes.segment_bytes >> 20} MiB, tiered by `rlm topic set {TOPIC}`"
        )

    def _produce(self) -> ProducedTotals:
        total = self._sizes.total_bytes
        start_ms = int(time.time() * 1000) - _HOUR_MS
        with self._narrator.step("producing with five codecs") as report:
            produced = produce(
                self._stage.cluster.bootstrap_servers,
                TOPIC,
                varied_records(seed=_SEED, partitions=self._sizes.partitions, start_ms=start_ms),
                total_bytes=total,
                ledger=self._ledger,
                on_progress=lambda size: report(size / total, megabytes(size)),
            )
        log_bytes = sum(files.log_bytes for files in self._local())
        self._narrator.say(
            f"{produced.records:,} records, {megabytes(produced.record_bytes)} of keys, values and "
            f"headers; {megabytes(log_bytes)} of record batches in the broker's log"
        )
        return produced

    def _wait_stored(self) -> list[LocalLogFiles]:
        """Wait until every rolled segment is stored; return the local log from before the wait."""
        local = self._local()
        rolled = [files.rolled_count for files in local]
        if min(rolled) < 2:
            raise DemoFailedError("too little was produced: nothing would be trimmed")

        def stored(report: Report) -> bool:
            counts = self._remote_segments()
            report(sum(counts) / sum(rolled), f"{sum(counts)} of {sum(rolled)} rolled segments")
            return counts == rolled

        self._wait("storing all rolled segments", stored)
        return local

    def _trim(self, before: list[LocalLogFiles]) -> list[LocalLogFiles]:
        """Lower local retention; wait until all but the newest rolled segment are deleted."""
        self._commands.set_topic(TOPIC, "--local-retention-bytes", "1")
        most = sum(files.log_bytes for files in before)
        least = sum(_kept_bytes(files) for files in before)

        def trimmed(report: Report) -> bool:
            local = self._local()
            now = sum(files.log_bytes for files in local)
            remark = f"{megabytes(now)} on the broker's disk, {megabytes(most)} before"
            gone = [files.base_offsets for files in local] == [f.base_offsets[-2:] for f in before]
            done = gone and now <= least
            report(1.0 if done else min(0.99, (most - now) / max(most - least, 1)), remark)
            return done

        self._wait("trimming the local log", trimmed)
        return self._local()

    def _checked_status(self, after: list[LocalLogFiles]) -> Mapping[int, Mapping[str, Any]]:
        """Compare `rlm status` with the broker and the store, and return it."""
        status = self._commands.partitions(TOPIC)
        for partition, files in zip(self._partitions(), after, strict=True):
            reported = status[partition]["local_start_offset"]
            _require_equal(f"local start of {partition}", reported, files.newest_rolled_offset)
            _require_equal(f"broker's log start of {partition}", self._low(partition), reported)
        sizes = stored_log_sizes(self._stage.rlm.store)
        segments = sum(each["remote_segments"] for each in status.values())
        remote_bytes = sum(each["remote_bytes"] for each in status.values())
        _require_equal("stored segments", segments, len(sizes))
        _require_equal("stored bytes", remote_bytes, sum(sizes))
        return status

    def _read(self, partition: int, local_start_offset: int) -> ReadBackSummary:
        """Read a partition through the gateway and compare it record by record."""
        total = self._ledger.count(partition)
        gateway = self._stage.rlm.gateway_address
        with self._narrator.step(f"a plain consumer reads {TOPIC}:{partition}") as report:
            records = _reported(consume(gateway, TOPIC, partition), total, report)
            digest = self._ledger.compare(partition, records)
        _require_equal(f"digest of {partition}", digest, self._ledger.digest(partition))
        remote = self._ledger.count_below(partition, local_start_offset)
        return ReadBackSummary(remote=remote, local=total - remote, digest=digest)

    def _remote_segments(self) -> list[int]:
        """Return the number of stored segments that the manager reports, by partition."""
        found = self._stage.rlm.remote_segments(TOPIC)
        return [found.get(partition, 0) for partition in self._partitions()]

    def _low(self, partition: int) -> int:
        """Return the log start of the broker itself."""
        consumer = Consumer(
            {"bootstrap.servers": self._stage.cluster.bootstrap_servers, "group.id": "demo"}
        )
        try:
            low, _ = consumer.get_watermark_offsets(
                TopicPartition(TOPIC, partition), timeout=_TIMEOUT_S
            )
            return low
        finally:
            consumer.close()

    def _wait(self, title: str, done: Callable[[Report], bool]) -> None:
        with self._narrator.step(title) as report:

            def checked() -> bool:
                self._stage.rlm.require_running()
                return done(report)

            try:
                wait_until(checked, _TIMEOUT_S, title, interval_s=_POLL_S)
            except AssertionError as late:
                raise DemoFailedError(str(late)) from None

    def _local(self) -> list[LocalLogFiles]:
        return [
            local_files(self._stage.partition_directory(TOPIC, partition))
            for partition in self._partitions()
        ]

    def _partitions(self) -> range:
        return range(self._sizes.partitions)


def _reported(
    records: Iterable[LoggedRecord], total: int, report: Report
) -> Iterator[LoggedRecord]:
    for count, record in enumerate(records, start=1):
        if count % _REPORT_EVERY == 0 or count == total:
            report(count / total, f"{count:,} records")
        yield record


def _kept_bytes(files: LocalLogFiles) -> int:
    """Return the bytes left after a trim: the newest rolled segment and the active one."""
    return sum(files.segment_bytes[-2:])


def _require_equal(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise DemoFailedError(f"{what}: {found} where {expected} is expected")
