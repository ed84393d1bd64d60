"""Runs the demo of streaming: produce, offload, lose the broker with its disk, read the store.

The topic is offloaded as a stream (PIP-76). When all records are stored, the demo kills the broker
and deletes its disk, which also contains the metadata topic. `rlm read --from-store` must then
print the produced records.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from typing import Any

from demo.narration import Narrator, Report, megabytes
from demo.outcome import StreamedOutcome, StreamedPartition
from demo.phases import TOPIC, DemoSizes, Phases, require_equal
from demo.stage import DemoStage
from demo.store_reader import StoreOnlyReader
from rlm.cli.invocation.amounts import iso_time

ROLLOVER = "5s"


class StreamScenario:
    """One demo with running services. The demo kills the broker.

    A phase that fails raises DemoFailedError.
    """

    def __init__(self, stage: DemoStage, sizes: DemoSizes, narrator: Narrator) -> None:
        self._stage = stage
        self._narrator = narrator
        self._phases = Phases(stage, sizes, narrator)

    def run(self) -> StreamedOutcome:
        """Run all phases; return their outcome."""
        self._phases.create_topic(
            "--offload-mode", "stream", "--offload-segment-rollover", ROLLOVER
        )
        produced = self._phases.produce()
        produced_ms = time.time() * 1000
        self._wait_offloaded()
        offloaded_ms = self._last_offloaded_ms()
        status = self._phases.commands.partitions(TOPIC)
        lost_bytes = self._lose_broker()
        return StreamedOutcome(
            produced=produced,
            stored_after_seconds=max(0.0, offloaded_ms - produced_ms) / 1000,
            partitions=tuple(
                self._read(partition, status[partition], lost_bytes)
                for partition in self._phases.partitions
            ),
        )

    def _wait_offloaded(self) -> None:
        """Wait until every record is stored, including those in the broker's active segments."""
        wanted = [self._phases.ledger.count(each) for each in self._phases.partitions]

        def offloaded(report: Report) -> bool:
            ends = self._stage.rlm.stored_end_offsets(TOPIC)
            stored = [ends.get(each, 0) for each in self._phases.partitions]
            report(sum(stored) / sum(wanted), f"{sum(stored):,} of {sum(wanted):,} records")
            return stored == wanted

        self._phases.wait("offloading all records", offloaded)

    def _last_offloaded_ms(self) -> int:
        """Print and return the time when the last segment was offloaded."""
        found = self._phases.commands.offload_segments(TOPIC)
        require_equal("the status of offload segments", {e["status"] for e in found}, {"offloaded"})
        last_ms = max(int(each["offloaded_ms"]) for each in found)
        self._narrator.say(
            f"{len(found)} offload segments; the last one was offloaded at {iso_time(last_ms)}"
        )
        return last_ms

    def _lose_broker(self) -> Mapping[int, int]:
        """Kill the broker and delete its disk; return the deleted bytes of each partition."""
        lost = [files.log_bytes for files in self._phases.local()]
        self._stage.cluster.kill()
        for directory in self._stage.cluster.broker.log_dirs:
            shutil.rmtree(directory)
        self._narrator.say(
            f"killed the broker, and deleted its disk: {megabytes(sum(lost))} of the topic, and "
            "the metadata topic"
        )
        return dict(zip(self._phases.partitions, lost, strict=True))

    def _read(
        self, partition: int, status: Mapping[str, Any], lost_bytes: Mapping[int, int]
    ) -> StreamedPartition:
        """Read a partition from the store, and compare each record with the produced one."""
        title = f"rlm read {TOPIC}:{partition} --from-store"
        reader = StoreOnlyReader(self._stage.store_configuration())
        digest = self._phases.compare(partition, title, reader.records(TOPIC, partition))
        return StreamedPartition(
            partition=partition,
            produced=self._phases.ledger.count(partition),
            read=reader.count,
            digest=digest,
            segments=status["remote_segments"],
            remote_bytes=status["remote_bytes"],
            lost_bytes=lost_bytes[partition],
        )
