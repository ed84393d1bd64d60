"""Runs the demo's phases: produce, store, trim, check the status, and read back.

Local retention first equals total retention. When all rolled segments are stored, the demo lowers
local retention, so that the broker's disk usage falls visibly. The demo compares `rlm status` with
the broker and with the store's files, and it compares the read records with the produced ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from demo.consuming import consume
from demo.disk import LocalLogFiles, stored_log_sizes
from demo.failure import DemoFailedError
from demo.narration import Narrator, Report, megabytes
from demo.outcome import DemoOutcome, PartitionOutcome, ReadBackSummary
from demo.phases import TOPIC, DemoSizes, Phases, require_equal
from demo.stage import DemoStage

_TIMEOUT_S = 60.0


class Scenario:
    """One demo with running services. A phase that fails raises DemoFailedError."""

    def __init__(self, stage: DemoStage, sizes: DemoSizes, narrator: Narrator) -> None:
        self._stage = stage
        self._phases = Phases(stage, sizes, narrator)

    def run(self) -> DemoOutcome:
        """Run all phases; return their outcome."""
        self._phases.create_topic()
        produced = self._phases.produce()
        before = self._wait_stored()
        after = self._trim(before)
        status = self._checked_status(after)
        read = [
            self._read(partition, status[partition]["local_start_offset"])
            for partition in self._phases.partitions
        ]
        return DemoOutcome(
            produced=produced,
            partitions=tuple(
                PartitionOutcome(
                    partition=partition,
                    produced=self._phases.ledger.count(partition),
                    read=read[partition],
                    segments=status[partition]["remote_segments"],
                    local_start_offset=status[partition]["local_start_offset"],
                    remote_bytes=status[partition]["remote_bytes"],
                    local_bytes_before=before[partition].log_bytes,
                    local_bytes_after=after[partition].log_bytes,
                )
                for partition in self._phases.partitions
            ),
        )

    def _wait_stored(self) -> list[LocalLogFiles]:
        """Wait until every rolled segment is stored; return the local segments before the wait."""
        local = self._phases.local()
        rolled = [files.rolled_count for files in local]
        if min(rolled) < 2:
            raise DemoFailedError(
                "cannot trim: a partition has fewer than 2 rolled segments. Raise --megabytes."
            )

        def stored(report: Report) -> bool:
            counts = self._remote_segments()
            report(sum(counts) / sum(rolled), f"{sum(counts)} of {sum(rolled)} rolled segments")
            return counts == rolled

        self._phases.wait("storing all rolled segments", stored)
        return local

    def _trim(self, before: list[LocalLogFiles]) -> list[LocalLogFiles]:
        """Lower local retention; wait until only the newest rolled and the active one are left."""
        self._phases.commands.set_topic(TOPIC, "--local-retention-bytes", "1")
        most = sum(files.log_bytes for files in before)
        least = sum(_kept_bytes(files) for files in before)

        def trimmed(report: Report) -> bool:
            local = self._phases.local()
            now = sum(files.log_bytes for files in local)
            remark = f"{megabytes(now)} on the broker's disk, {megabytes(most)} before"
            gone = [files.base_offsets for files in local] == [f.base_offsets[-2:] for f in before]
            done = gone and now <= least
            report(1.0 if done else min(0.99, (most - now) / max(most - least, 1)), remark)
            return done

        self._phases.wait("trimming the local log", trimmed)
        return self._phases.local()

    def _checked_status(self, after: list[LocalLogFiles]) -> Mapping[int, Mapping[str, Any]]:
        """Compare `rlm status` with the broker and the store; return the status by partition."""
        status = self._phases.commands.partitions(TOPIC)
        for partition, files in zip(self._phases.partitions, after, strict=True):
            reported = status[partition]["local_start_offset"]
            require_equal(
                f"the local start of partition {partition}", reported, files.newest_rolled_offset
            )
            require_equal(
                f"the broker's log start of partition {partition}", self._low(partition), reported
            )
        sizes = stored_log_sizes(self._stage.rlm.store)
        segments = sum(each["remote_segments"] for each in status.values())
        remote_bytes = sum(each["remote_bytes"] for each in status.values())
        require_equal("the number of stored segments", segments, len(sizes))
        require_equal("the number of stored bytes", remote_bytes, sum(sizes))
        return status

    def _read(self, partition: int, local_start_offset: int) -> ReadBackSummary:
        """Read a partition through the gateway, and compare each record with the produced one."""
        total = self._phases.ledger.count(partition)
        records = consume(self._stage.rlm.gateway_address, TOPIC, partition)
        title = f"a plain consumer reads {TOPIC}:{partition}"
        digest = self._phases.compare(partition, title, records)
        remote = self._phases.ledger.count_below(partition, local_start_offset)
        return ReadBackSummary(remote=remote, local=total - remote, digest=digest)

    def _remote_segments(self) -> list[int]:
        """Return the number of stored segments that the manager reports, by partition."""
        found = self._stage.rlm.remote_segments(TOPIC)
        return [found.get(partition, 0) for partition in self._phases.partitions]

    def _low(self, partition: int) -> int:
        """Return the broker's own log start offset."""
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


def _kept_bytes(files: LocalLogFiles) -> int:
    """Return the bytes left after a trim: the newest rolled segment and the active one."""
    return sum(files.segment_bytes[-2:])
