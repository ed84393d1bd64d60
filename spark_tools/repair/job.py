"""Runs the repair job: reads dead letters with Spark's Kafka connector, in micro-batches.

The order of the effects of one batch:

    read metadata to its end -> decide -> delete objects -> write outcomes
    -> pause if most dead letters are written back -> checkpoint

The job writes waiting and failed dead letters back to the dead-letter topic, which has no
retention. With an interval, the pause limits the growth of that topic: if most of a batch is
written back, the next batch waits for PAUSE_MS. The pause also delays the next attempt of
a dead letter.

The driver reads the keys of a batch, and whole dead letters about orphans. The executors read all
dead letters, act, and return counts. If several records have the same key, executors first read the
batch to find the invalid dead letters (misplaced.py). After an interruption at any point, the batch
runs again; this is harmless (execution.py).

Memory of the driver: the metadata, the keys of one batch, its dead letters about orphans, and the
object names that do not contain their segment's id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rsm.segment.clock import Clock
from rsm.system_clock import SystemClock
from spark_tools.connection import ClusterConnection
from spark_tools.record_writer import write_records
from spark_tools.repair.batch_decisions import BatchDecisions, DeadLetterLocation
from spark_tools.repair.driver_decisions import ASKED_COLUMNS, decide_on_batch
from spark_tools.repair.execution import (
    DEAD_LETTER_COLUMNS,
    OUTCOMES_DDL,
    RepairTerms,
    carry_out,
    rehearse,
)
from spark_tools.repair.misplaced import LOCATIONS_DDL, find_misplaced
from spark_tools.repair.orphan_decisions import SIGHTING_MAX_AGE_MS, OrphanTerms
from spark_tools.repair.outcomes import OutcomeTopics, RepairOutcome
from spark_tools.snapshot import MetadataSnapshot

DEFAULT_BATCH_DEAD_LETTER_COUNT = 200_000
"""The maximum number of dead letters per batch, unless the user sets another one.

Even a small batch takes Spark about a second. A dead letter takes a fraction of a KiB of the
driver's memory.
"""

_WRITE_TIMEOUT_MS = 120_000
PAUSE_MS = 600_000
_STEP_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairSettings:
    """Represents the settings of the job. It ends after one run if `interval_s` is None."""

    dead_letter_topic: str
    parking_topic: str
    checkpoint: str
    interval_s: int | None
    batch_dead_letter_count: int
    max_attempts: int
    orphan_grace_ms: int
    report: str | None


class RepairJob:
    """Repairs the dead letters of one topic. `kafka` are the options of Spark's connector."""

    def __init__(
        self,
        spark: SparkSession,
        connection: ClusterConnection,
        settings: RepairSettings,
        kafka: Mapping[str, str],
        metadata: MetadataSnapshot,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._kafka = kafka
        self._metadata = metadata
        self._client = connection.client
        self._terms = RepairTerms(
            store=connection.store,
            topics=OutcomeTopics(
                metadata_topic=connection.metadata_topic,
                metadata_partition_count=metadata.identity.partition_count,
                dead_letter_topic=settings.dead_letter_topic,
                parking_topic=settings.parking_topic,
                max_attempts=settings.max_attempts,
            ),
            is_itemized=settings.report is not None,
        )
        self.outcomes: Counter[str] = Counter()
        self._query: StreamingQuery | None = None

    def run(self) -> None:
        """Process the dead letters that exist at the start; with an interval, also later ones."""
        interval_s = self._settings.interval_s
        writer = self._dead_letters().option("checkpointLocation", self._settings.checkpoint)
        writer = writer.foreachBatch(self._repair_batch)
        if interval_s is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{interval_s} seconds")
        self._query = writer.start()
        self._query.awaitTermination()

    def rehearse(self) -> None:
        """Count the outcome that each dead letter would have; change nothing."""
        writer = self._dead_letters().foreachBatch(
            self._rehearse_batch
        )  # Spark removes its temporary checkpoint
        writer.trigger(availableNow=True).start().awaitTermination()

    def _dead_letters(self) -> DataStreamWriter:
        """Return a stream of the whole topic; each batch has a limited size."""
        dead_letters = (
            self._spark.readStream.format("kafka")
            .options(**self._kafka)
            .option("subscribe", self._settings.dead_letter_topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", self._settings.batch_dead_letter_count)
            # All cores delete, even if the topic has few partitions.
            .option("minPartitions", self._spark.sparkContext.defaultParallelism)
            .load()
        )
        return dead_letters.writeStream

    def _rehearse_batch(self, batch: DataFrame, _number: int) -> None:
        dead_letters = batch.where("value is not null")
        decisions = self._decide(dead_letters)
        if decisions is not None:
            act = partial(rehearse, decisions=decisions)
            self._count(dead_letters.select(*DEAD_LETTER_COLUMNS).mapInArrow(act, OUTCOMES_DDL))

    def _repair_batch(self, batch: DataFrame, _number: int) -> None:
        dead_letters = batch.where("value is not null")
        decisions = self._decide(dead_letters)
        if decisions is None:
            return
        outcomes = self._carry_out(dead_letters, decisions)
        if self._settings.interval_s is not None:
            pause_after(outcomes, SystemClock(), self._is_stopped)

    def _is_stopped(self) -> bool:
        return self._query is not None and not self._query.isActive

    def _carry_out(self, dead_letters: DataFrame, decisions: BatchDecisions) -> Counter[str]:
        """Delete objects and write outcomes; return the number of dead letters per outcome."""
        act = partial(
            carry_out,
            terms=self._terms,
            decisions=decisions,
            clock=SystemClock(),
            write=partial(write_records, self._client, timeout_ms=_WRITE_TIMEOUT_MS),
        )
        outcomes = dead_letters.select(*DEAD_LETTER_COLUMNS).mapInArrow(act, OUTCOMES_DDL)
        if self._settings.report is None:
            return self._count(outcomes)
        outcomes = outcomes.persist()  # The report and the counts must come from one execution.
        try:
            report = outcomes.select("segment", "outcome", "reason")
            report.write.mode("append").parquet(self._settings.report)
            return self._count(outcomes)
        finally:
            outcomes.unpersist()

    def _decide(self, dead_letters: DataFrame) -> BatchDecisions | None:
        """Return the decisions on a batch; None for an empty batch."""
        asked = dead_letters.selectExpr(*ASKED_COLUMNS).toArrow()
        if not asked.num_rows:
            return None
        now_ms = SystemClock().wall_ms()
        orphans = OrphanTerms(
            keys=self._terms.store.keys,
            cut_off_ms=now_ms - self._settings.orphan_grace_ms,
            seen_since_ms=now_ms - SIGHTING_MAX_AGE_MS,
        )
        return decide_on_batch(
            asked.to_batches(), self._metadata, orphans, partial(self._find_misplaced, dead_letters)
        )

    def _find_misplaced(
        self, dead_letters: DataFrame, decisions: BatchDecisions, keys: Collection[bytes]
    ) -> set[DeadLetterLocation]:
        find = partial(find_misplaced, decisions=decisions, keys=frozenset(keys))
        found = dead_letters.select(*DEAD_LETTER_COLUMNS).mapInArrow(find, LOCATIONS_DDL).toArrow()
        return set(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def _count(self, outcomes: DataFrame) -> Counter[str]:
        found: Counter[str] = Counter()
        counted = outcomes.select("outcome", "dead_letters").toArrow()
        for name, count in zip(*(column.to_pylist() for column in counted.columns), strict=True):
            found[name] += count
        self.outcomes += found
        return found


def pause_after(outcomes: Mapping[str, int], clock: Clock, is_stopped: Callable[[], bool]) -> None:
    """Wait for PAUSE_MS if most dead letters were written back; otherwise, return at once.

    Returns within a second after `is_stopped` returns True.
    """
    back = outcomes.get(RepairOutcome.WAITING, 0) + outcomes.get(RepairOutcome.FAILED, 0)
    if back <= sum(outcomes.values()) - back:
        return
    until_ms = clock.monotonic_ms() + PAUSE_MS
    while clock.monotonic_ms() < until_ms and not is_stopped():
        clock.sleep_ms(_STEP_MS)
