"""The repair job: letters by Spark's Kafka connector, a micro-batch at a time.

The order of effects of one batch, here and nowhere else:

    metadata read to its end -> letters judged -> objects deleted -> outcomes written -> checkpoint

Killed anywhere, the batch is done again: what was deleted counts as deleted, an end of a deletion
that is published twice is refused the second time, and of letters that went back twice one counts.
Memory of the driver: the metadata, and the letters of one batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from rsm.system_clock import SystemClock
from spark_tools.connection import Connection
from spark_tools.repair.judging import judge_letters
from spark_tools.repair.letter_rows import (
    OUTCOMES_DDL,
    LetterPlace,
    RepairTerms,
    carry_out,
    read_letters,
)
from spark_tools.repair.letters import Letter
from spark_tools.repair.orphan_judging import OrphanTerms
from spark_tools.repair.proof import Judgement
from spark_tools.snapshot import MetadataSnapshot

DEFAULT_BATCH_LETTERS_COUNT = 50_000
"""A batch takes Spark a second or so, however small; each letter some KiB of the driver."""

_LETTER_COLUMNS = ("partition", "offset", "key", "value")
_RECORD_COLUMNS = ("topic", "partition", "key", "value", "headers")


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairSettings:
    """What the job was told. `interval_s` None: all letters that there are now, then the end."""

    letter_topic: str
    parking_topic: str
    checkpoint: str
    interval_s: int | None
    batch_letters_count: int
    max_attempts: int
    orphan_grace_ms: int
    report: str | None


class RepairJob:
    """Works through the dead letters. `kafka` are the connector's options."""

    def __init__(
        self,
        spark: SparkSession,
        connection: Connection,
        settings: RepairSettings,
        kafka: Mapping[str, str],
        metadata: MetadataSnapshot,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._keys = connection.store.keys
        self._kafka = kafka
        self._metadata = metadata
        self._terms = RepairTerms(
            store=connection.store,
            metadata_topic=connection.metadata_topic,
            metadata_partition_count=metadata.identity.partition_count,
            letter_topic=settings.letter_topic,
            parking_topic=settings.parking_topic,
            max_attempts=settings.max_attempts,
        )
        self.outcomes: Counter[str] = Counter()

    def run(self) -> None:
        """Returns when all letters that there were are done; never, with an interval."""
        settings = self._settings
        letters = (
            self._spark.readStream.format("kafka")
            .options(**self._kafka)
            .option("subscribe", settings.letter_topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", settings.batch_letters_count)
            # However few partitions the topic has, all cores delete.
            .option("minPartitions", self._spark.sparkContext.defaultParallelism)
            .load()
        )
        writer = letters.writeStream.option("checkpointLocation", settings.checkpoint)
        writer = writer.foreachBatch(self._repair_batch)
        if settings.interval_s is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{settings.interval_s} seconds")
        writer.start().awaitTermination()

    def rehearse(self) -> None:
        """Count what would be done with each letter of the topic; nothing is changed."""
        letters = (
            self._spark.read.format("kafka")
            .options(**self._kafka)
            .option("subscribe", self._settings.letter_topic)
            .load()
        )
        readable, unreadable_count = self._received(letters.select(*_LETTER_COLUMNS))
        judgements = self._judged(readable)
        self.outcomes.update(each.verdict.value for each in judgements.values())
        if unreadable_count:
            self.outcomes["unreadable"] += unreadable_count

    def _repair_batch(self, batch: DataFrame, _number: int) -> None:
        letters = batch.select(*_LETTER_COLUMNS)
        readable, unreadable_count = self._received(letters)
        if not readable and not unreadable_count:
            return
        judgements = self._judged(readable)
        act = partial(carry_out, terms=self._terms, judgements=judgements, clock=SystemClock())
        # Kept, so that what is counted, reported and written is one and the same carrying out.
        outcomes = letters.mapInArrow(act, OUTCOMES_DDL).persist()
        try:
            # Counted here: a few words a letter are less than a shuffle.
            self.outcomes.update(outcomes.select("outcome").toArrow()["outcome"].to_pylist())
            records = outcomes.where("topic is not null").select(*_RECORD_COLUMNS)
            records.write.format("kafka").options(**self._kafka).option(
                "includeHeaders", "true"
            ).save()
            if self._settings.report is not None:
                report = outcomes.select("segment", "outcome", "reason")
                report.write.mode("append").parquet(self._settings.report)
        finally:
            outcomes.unpersist()

    def _judged(self, letters: Mapping[LetterPlace, Letter]) -> dict[LetterPlace, Judgement]:
        cut_off_ms = SystemClock().wall_ms() - self._settings.orphan_grace_ms
        orphans = OrphanTerms(keys=self._keys, cut_off_ms=cut_off_ms)
        return judge_letters(letters, self._metadata, orphans)

    def _received(self, letters: DataFrame) -> tuple[dict[LetterPlace, Letter], int]:
        """The letters that can be read, by their places, and how many can't be."""
        return read_letters(letters.toArrow().to_batches())
