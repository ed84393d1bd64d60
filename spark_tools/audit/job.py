"""The audit: lists, compares, reads the metadata on, looks again at what was suspicious.

The order is what makes it safe: what is suspected by the first listing counts only if the metadata
as read after that listing, and a second look at the object, still say so. If any source does not
answer whole, nothing is said at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rlmm.spi import SegmentRecord
from rsm.segment.errors import InvalidConfigError, RetriableError, TieredStorageError
from rsm.segment.metadata import SegmentState
from rsm.storage.chunk_storage import ChunkInfo
from spark_tools.audit.findings import FINDINGS_DDL, Finding
from spark_tools.audit.key_ranges import ExpectedObject, expected_objects, key_ranges
from spark_tools.audit.listing import SIGHTINGS_DDL, list_and_compare, look_again, range_rows
from spark_tools.audit.objects import Age, confirmed
from spark_tools.audit.segments import PartitionRecords, examine
from spark_tools.audit.totals import TopicTotals, topic_totals
from spark_tools.connection import StoreConnection
from spark_tools.snapshot import MetadataSnapshot

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
    """What was found, as of one position of the metadata topic."""

    findings: tuple[Finding, ...]
    totals: tuple[TopicTotals, ...]
    positions: Mapping[int, int]


class Audit:
    """One audit of one store. Memory of the driver: the metadata, and what is suspected."""

    def __init__(
        self,
        spark: SparkSession,
        store: StoreConnection,
        open_metadata: OpenMetadata,
        settings: AuditSettings,
    ) -> None:
        self._spark = spark
        self._store = store
        self._open_metadata = open_metadata
        self._settings = settings

    def run(self, now_ms: int) -> AuditResult:
        """Raises IncompleteError. `now_ms` is the wall clock's, which the store's must be near."""
        age = Age(cut_off_ms=now_ms - self._settings.grace_ms)
        try:
            with self._open_metadata() as metadata:
                _require_whole(metadata)
                suspicions = self._compared(metadata, age)
            sightings = self._seen_again(suspicions)
            with self._open_metadata() as metadata:
                _require_whole(metadata)
                return _result(metadata, suspicions, sightings, age)
        except PySparkException as error:
            raise IncompleteError("the store did not answer whole", reason=error) from error
        except (InvalidConfigError, RetriableError) as error:
            raise IncompleteError("the metadata was not read whole", reason=error) from error

    def _compared(self, metadata: MetadataSnapshot, age: Age) -> list[Finding]:
        """The first look."""
        ranges = key_ranges(
            _expected(metadata.every_segment()),
            objects_per_range=self._settings.objects_per_range,
        )
        compare = partial(list_and_compare, store=self._store, age=age)
        rows = self._spark.createDataFrame(range_rows(ranges)).repartition(len(ranges))
        found = [
            Finding(**row.asDict()) for row in rows.mapInArrow(compare, FINDINGS_DDL).collect()
        ]
        if not self._settings.verify_checksums:
            return found
        # Every object is suspected of other bytes until it has been read.
        suspected = {each.object_key for each in found}
        return found + [
            Finding(kind="checksum", object_key=each.key)
            for each in _expected(metadata.every_segment())
            if each.must_exist and each.key not in suspected
        ]

    def _seen_again(self, suspicions: list[Finding]) -> dict[str, ChunkInfo]:
        """The second look: what is there of the objects that are suspected."""
        if not suspicions:
            return {}
        look = partial(look_again, store=self._store, read_bytes=self._settings.verify_checksums)
        names = [(each.object_key,) for each in suspicions]
        frame = self._spark.createDataFrame(names, "object_key string")
        return {
            row["object_key"]: ChunkInfo(
                name=row["object_key"],
                length_bytes=row["length_bytes"],
                last_modified_ms=row["last_modified_ms"],
                crc32c=row["crc32c"],
            )
            for row in frame.mapInArrow(look, SIGHTINGS_DDL).collect()
        }


def _result(
    metadata: MetadataSnapshot,
    suspicions: Iterable[Finding],
    sightings: Mapping[str, ChunkInfo],
    age: Age,
) -> AuditResult:
    """What is left of the suspicions by newer metadata, and what that shows by itself."""
    segments = list(metadata.every_segment())
    known = {each.key: each for each in _expected(segments)}
    looked_at = (
        confirmed(each, sightings.get(each.object_key), known.get(each.object_key), age)
        for each in suspicions
    )
    findings = [each for each in looked_at if each is not None]
    for tip, records in groupby(segments, key=lambda each: each.metadata.topic_id_partition):
        partition = PartitionRecords(
            topic_id_partition=tip,
            state=metadata.partition_state(tip),
            segments=tuple(records),
        )
        findings += examine(partition, cut_off_ms=age.cut_off_ms)
    return AuditResult(
        findings=tuple(sorted(findings, key=lambda each: (each.kind, each.object_key))),
        totals=topic_totals([each.metadata for each in segments], findings),
        positions=metadata.positions(),
    )


def _require_whole(metadata: MetadataSnapshot) -> None:
    """IncompleteError if a record of the metadata could not be read, or needs newer rules."""
    unread = metadata.unread_records()
    if unread:
        raise IncompleteError("the metadata topic can't be read whole", records=unread)


def _expected(segments: Iterable[SegmentRecord]) -> Iterator[ExpectedObject]:
    """Deleted segments name objects too, but nothing of them is awaited any more."""
    return expected_objects(
        each.metadata
        for each in segments
        if each.metadata.state is not SegmentState.DELETE_SEGMENT_FINISHED
    )
