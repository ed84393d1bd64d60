"""The audit: lists, compares, looks again at what was suspicious, reads the metadata on.

The order is what makes it safe: what is suspected by the first listing counts only if a second look
at the object, and the metadata as read after that, still say so. If any source does not answer
whole, nothing is said at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import islice

from pyspark.sql import SparkSession

from rsm.segment.clock import Clock
from rsm.segment.errors import (
    CorruptError,
    InvalidConfigError,
    RetriableError,
    TieredStorageError,
)
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.storage.chunk_storage import ChunkInfo
from spark_tools.audit.findings import FINDINGS_DDL, Finding
from spark_tools.audit.key_ranges import expected_rows, key_ranges
from spark_tools.audit.listing import (
    SIGHTINGS_DDL,
    list_and_compare,
    look_again,
    range_rows,
    suspect_rows,
)
from spark_tools.audit.name_order import in_name_order
from spark_tools.audit.objects import Age
from spark_tools.audit.orphan_dead_letters import Sightings
from spark_tools.audit.settling import SettledFindings, settle
from spark_tools.connection import StoreConnection
from spark_tools.snapshot import MetadataSnapshot
from spark_tools.spark.spark_errors import SPARK_ERRORS, cause_of

_RANGES_OF_A_CORE = 4

OpenMetadata = Callable[[], AbstractContextManager[MetadataSnapshot]]
"""Reads the metadata topic to its end of now."""


class IncompleteError(TieredStorageError):
    """A source did not answer whole: nothing was decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """`grace_ms`: what is younger is not judged. `verify_checksums`: every object is read."""

    grace_ms: int
    objects_per_range: int
    verify_checksums: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What was found, as of `seen.positions` of the metadata topic, and how long that took."""

    settled: SettledFindings
    seen: Sightings
    took_ms: int


class Audit:
    """One audit of one store.

    Memory of the driver: what a few ranges of names expect for each core of Spark's, what is
    suspected, and what the metadata itself takes.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: StoreConnection,
        open_metadata: OpenMetadata,
        settings: AuditSettings,
        clock: Clock,
    ) -> None:
        """The clock's wall time is what the store's must be near."""
        self._spark = spark
        self._store = store
        self._open_metadata = open_metadata
        self._settings = settings
        self._clock = clock

    def run(self) -> AuditResult:
        """Raises IncompleteError."""
        first_ms = self._clock.wall_ms()
        started_ms = self._clock.monotonic_ms()
        age = Age(cut_off_ms=first_ms - self._settings.grace_ms)
        try:
            with self._open_metadata() as metadata:
                _require_whole(metadata)
                suspicions = self._compared(metadata, age)
                sightings = self._seen_again(suspicions)
                last_ms = self._clock.wall_ms()
                metadata.catch_up_all()
                positions = metadata.positions()
                settled = settle(metadata, suspicions, sightings, age, self._store.keys)
                _require_whole(metadata)
                seen = Sightings(
                    first_ms=first_ms,
                    last_ms=last_ms,
                    topic=metadata.identity,
                    positions=positions,
                )
                took_ms = self._clock.monotonic_ms() - started_ms
                return AuditResult(settled=settled, seen=seen, took_ms=took_ms)
        except SPARK_ERRORS as error:
            raise IncompleteError(
                "the store did not answer whole", reason=cause_of(error)
            ) from error
        except (InvalidConfigError, RetriableError, CorruptError) as error:
            raise IncompleteError("the metadata was not read whole", reason=error) from error

    def _compared(self, metadata: MetadataSnapshot, age: Age) -> list[Finding]:
        """The first look."""
        settings = self._settings
        compare = partial(
            list_and_compare, store=self._store, age=age, read_bytes=settings.verify_checksums
        )
        # Some at a time: what Spark is handed it keeps in the driver's memory too.
        at_once = _RANGES_OF_A_CORE * self._spark.sparkContext.defaultParallelism
        found: list[Finding] = []
        with in_name_order(expected_rows(_living(metadata))) as expected:
            ranges = key_ranges(expected, objects_per_range=settings.objects_per_range)
            while group := list(islice(ranges, at_once)):
                rows = self._spark.createDataFrame(range_rows(group)).repartition(len(group))
                outcome = rows.mapInArrow(compare, FINDINGS_DDL).collect()
                found += [Finding(**row.asDict()) for row in outcome]
        return found

    def _seen_again(self, suspicions: list[Finding]) -> dict[str, ChunkInfo]:
        """The second look: what is there of the objects that are suspected."""
        if not suspicions:
            return {}
        look = partial(look_again, store=self._store)
        suspects = suspect_rows(suspicions, read_bytes=self._settings.verify_checksums)
        frame = self._spark.createDataFrame(suspects)
        return {
            row["object_key"]: ChunkInfo(
                name=row["object_key"],
                length_bytes=row["length_bytes"],
                last_modified_ms=row["last_modified_ms"],
                crc32c=row["crc32c"],
            )
            for row in frame.mapInArrow(look, SIGHTINGS_DDL).collect()
        }


def _require_whole(metadata: MetadataSnapshot) -> None:
    """IncompleteError if a record of the metadata could not be read, or needs newer rules."""
    unread = metadata.unread_records()
    if unread:
        raise IncompleteError("the metadata topic cannot be read whole", records=unread)


def _living(metadata: MetadataSnapshot) -> Iterator[RemoteLogSegmentMetadata]:
    """Deleted segments name objects too, but nothing of them is awaited any more."""
    for each in metadata.every_segment():
        if each.metadata.state is not SegmentState.DELETE_SEGMENT_FINISHED:
            yield each.metadata
