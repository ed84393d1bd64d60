"""Runs an audit: lists the store, compares, rechecks suspect objects, and reads newer metadata.

This order makes the audit safe. A finding of the first listing counts only if a second look at the
object and newer metadata confirm it. If a source does not answer completely, the audit
reports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from rlmm.cache.rocksdb import RocksDbStore
from rlmm.cache.rocksdb_copy import copy_cache
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
from spark_tools.connection import ClusterConnection, StoreConnection
from spark_tools.snapshot import MetadataSnapshot, open_snapshot
from spark_tools.spark.spark_errors import SPARK_ERRORS, cause_of

_RANGES_PER_CORE = 4

OpenMetadata = Callable[[], AbstractContextManager[MetadataSnapshot]]
"""Opens the metadata as of the current end of its topic."""


class IncompleteError(TieredStorageError):
    """Reports that the store or the metadata could not be read completely: no finding is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Represents the settings of an audit.

    Unknown objects, unfinished work, and segments below the log start offset are reported only from
    the age `grace_ms`. `verify_checksums` makes the audit read every object of finished segments.
    """

    grace_ms: int
    objects_per_range: int
    verify_checksums: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """Represents the findings as of `seen.positions` of the metadata topic, and the duration."""

    settled: SettledFindings
    seen: Sightings
    took_ms: int


class Audit:
    """Represents one audit of one store. Not thread-safe.

    Driver memory: the expected objects of a few key ranges per Spark core, all findings, and the
    memory of the open metadata.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: StoreConnection,
        open_metadata: OpenMetadata,
        settings: AuditSettings,
        clock: Clock,
    ) -> None:
        """Store the arguments. The wall time of `clock` must be close to the store's."""
        self._spark = spark
        self._store = store
        self._open_metadata = open_metadata
        self._settings = settings
        self._clock = clock

    def run(self) -> AuditResult:
        """Run the audit. Raises IncompleteError if the store or the metadata cannot be read."""
        first_ms = self._clock.wall_ms()
        started_ms = self._clock.monotonic_ms()
        age = Age(cut_off_ms=first_ms - self._settings.grace_ms)
        try:
            with self._open_metadata() as metadata:
                _require_whole(metadata)
                suspicions = self._compare(metadata, age)
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
                "cannot read the store completely", reason=cause_of(error)
            ) from error
        except (InvalidConfigError, RetriableError, CorruptError) as error:
            raise IncompleteError("cannot read the metadata completely", reason=error) from error

    def _compare(self, metadata: MetadataSnapshot, age: Age) -> list[Finding]:
        """List the store and return the suspected findings."""
        settings = self._settings
        compare = partial(
            list_and_compare, store=self._store, age=age, read_bytes=settings.verify_checksums
        )
        # Compare one group of ranges at a time, because the driver buffers the group's rows.
        at_once = _RANGES_PER_CORE * self._spark.sparkContext.defaultParallelism
        found: list[Finding] = []
        with in_name_order(expected_rows(_living(metadata))) as expected:
            ranges = key_ranges(expected, objects_per_range=settings.objects_per_range)
            while group := list(islice(ranges, at_once)):
                rows = self._spark.createDataFrame(range_rows(group)).repartition(len(group))
                outcome = rows.mapInArrow(compare, FINDINGS_DDL).collect()
                found += [Finding(**row.asDict()) for row in outcome]
        return found

    def _seen_again(self, suspicions: list[Finding]) -> dict[str, ChunkInfo]:
        """Look up the suspected objects again; return those that exist, by name."""
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


@contextmanager
def open_metadata(
    connection: ClusterConnection, *, timeout_ms: int, cache: Path | None = None
) -> Iterator[MetadataSnapshot]:
    """Open the metadata as of the topic's current end, in RocksDB in a temporary directory.

    `cache` is the directory of a cache, possibly in use, to copy first. The topic is then read
    from the cache's positions, or from the start if the cache belongs to another topic. Raises
    InvalidConfigError, RetriableError. Memory: RocksDB's caches, for any number of segments.
    """
    with TemporaryDirectory(prefix="rlm-audit-") as directory:
        store = RocksDbStore(Path(directory) / "cache")
        try:
            if cache is not None:
                copy_cache(cache, store, Path(directory) / "secondary")
            with open_snapshot(connection, timeout_ms=timeout_ms, store=store) as snapshot:
                yield snapshot
        finally:
            store.close()


def _require_whole(metadata: MetadataSnapshot) -> None:
    """Raise IncompleteError if a metadata record is unreadable or needs a newer fold."""
    unread = metadata.unread_records()
    if unread:
        raise IncompleteError("cannot read the metadata topic completely", records=unread)


def _living(metadata: MetadataSnapshot) -> Iterator[RemoteLogSegmentMetadata]:
    """Yield the segments whose objects may exist: those that are not deleted."""
    for each in metadata.every_segment():
        if each.metadata.state is not SegmentState.DELETE_SEGMENT_FINISHED:
            yield each.metadata
