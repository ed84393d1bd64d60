"""Exports stored offsets that no earlier export wrote, several files per Spark job."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from rsm.segment.errors import FencedError, InvalidConfigError, NotFoundError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.ranges import OffsetRange
from spark_tools.connection import ClusterConnection
from spark_tools.export.file_ranges import FileRange, WrittenFiles, cut, hulls
from spark_tools.export.losses import ExportLosses, add_lines, cause_of
from spark_tools.export.manifest import Manifest
from spark_tools.export.ranges import (
    ExportedRange,
    ExportFormat,
    remaining,
    require_same_rows,
)
from spark_tools.export.skipped import SkipCause, SkippedRange, SkippedRanges
from spark_tools.export.writing import RowsToWrite, write_files
from spark_tools.reading.opening import open_planner
from spark_tools.reading.options import EARLIEST_OFFSET, Mode, OffsetBounds, ReadOptions
from spark_tools.reading.plan import Hole, Piece
from spark_tools.reading.planner import Planner
from spark_tools.rows.schema import UNREADABLE
from spark_tools.schemas.decoding import NOT_DECODING, Decoding
from spark_tools.spark.hadoop_files import HadoopFiles
from spark_tools.spark.spark_errors import SPARK_ERRORS

_FILES_PER_CORE = 4
"""The files per core in a Spark job. More files per job mean fewer jobs.

Each job has a fixed cost, and some cores are idle while its last files are written.
"""
_MAX_FAILURES = 3
_FIRST_PAUSE_S, _PAUSE_GROWTH, _LONGEST_PAUSE_S = 2.0, 5, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """Represents the form of the files: each contains at most about `file_bytes` of stored data.

    With `by_date`, the files of each date have a directory. `decoding` names the decoded columns.
    """

    file_bytes: int
    by_date: bool
    decoding: Decoding = NOT_DECODING


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportProgress:
    """Represents how much of the plan is finished, in stored bytes and in files.

    `undecodable_count` counts the undecodable records of the last Spark job.
    """

    done_bytes: int
    total_bytes: int
    files_left: int
    undecodable_count: int


ExportEvent = ExportedRange | SkippedRange | ExportProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPlan:
    """Represents what an export would do: the files to write and the ranges to skip."""

    files: tuple[FileRange, ...]
    skipped: tuple[SkippedRange, ...]


class Export:
    """Exports to the directory `output` the records that the data source's `options` select."""

    def __init__(
        self,
        spark: SparkSession,
        options: Mapping[str, str],
        output: str,
        settings: ExportSettings,
    ) -> None:
        self._spark = spark
        self._connection = ClusterConnection.of(options)
        given = ReadOptions.of(options)
        columns = tuple(name for name in given.columns if name != UNREADABLE)
        # A task stops at unreadable offsets and reports them; the plan lists missing offsets.
        self._options = replace(given, columns=columns, mode=Mode.FAILFAST)
        self._settings = settings
        self._format = ExportFormat.of(
            self._options, by_date=settings.by_date, decoding=settings.decoding
        )
        self._files = HadoopFiles(spark, output)
        self._manifest = Manifest(self._files)
        self._done: list[ExportedRange] = []
        self._losses = ExportLosses(SkippedRanges(self._files), self._done)

    def plan(self) -> ExportPlan:
        """Return what `run` would do now; change nothing.

        Raises InvalidConfigError if an earlier export had another format.
        """
        self._done[:] = self._manifest.lines()
        require_same_rows(self._done, self._format)
        unleased = replace(self._planning, lease_ms=0)
        with open_planner(self._connection, unleased) as planner:
            files, holes, lost = self._plan(planner, unleased)
        skipped = (*lost, *(_skipped_hole(hole) for hole in holes))
        return ExportPlan(files=tuple(files), skipped=skipped)

    def run(self) -> Iterator[ExportEvent]:
        """Export; yield the exported ranges, the skipped ranges, and the progress after each job.

        Raises InvalidConfigError if an earlier export had another format, or if executors and
        driver do not share the directory. Raises FencedError if another export writes the same
        offsets, and RetriableError if three Spark jobs in a row read nothing.
        """
        self._done[:] = self._manifest.lines()
        require_same_rows(self._done, self._format)
        self._manifest.complete(self._done, datetime.now(UTC))
        with open_planner(self._connection, self._planning) as planner:
            files, holes, lost = self._plan(planner, self._planning)
            skipped = [_skipped_hole(hole) for hole in holes]
            self._losses.begin(skipped)
            yield from lost
            yield from skipped
            yield from self._export_all(planner, files)
        self._losses.finish(lost)

    @property
    def _planning(self) -> ReadOptions:
        """Return options for a plan that lists missing ranges.

        A piece has at most about `file_bytes`.
        """
        return replace(
            self._options,
            mode=Mode.DROPMALFORMED,
            min_partitions=1,
            split_bytes=min(self._options.split_bytes, self._settings.file_bytes),
        )

    def _plan(
        self, planner: Planner, options: ReadOptions
    ) -> tuple[list[FileRange], list[Hole], list[SkippedRange]]:
        """Return the files to write, the missing ranges, and the ranges that expired unexported."""
        pieces = [piece for task in planner.batch(options) for piece in task]
        planned = remaining(pieces, self._done)
        chosen = [tip for tip in planner.partitions if options.chooses(tip.topic, tip.partition)]
        lost = self._losses.expired_now(
            map(planner.partition, chosen),
            planned,
            lambda tip: options.starting.of(tip.topic, tip.partition) == EARLIEST_OFFSET,
        )
        parts = list(cut(planned, pieces, self._settings.file_bytes))
        files = [part for part in parts if isinstance(part, FileRange)]
        return files, [part for part in parts if isinstance(part, Hole)], lost

    def _export_all(self, planner: Planner, files: Sequence[FileRange]) -> Iterator[ExportEvent]:
        """Export several files at a time; retry temporary failures after all other ranges."""
        queue = deque(files)
        total_bytes = sum(each.size_bytes for each in files)
        at_once = _FILES_PER_CORE * self._spark.sparkContext.defaultParallelism
        failures = 0
        while queue:
            ranges = next_ranges(queue, at_once, time.sleep)
            written = yield from self._export(planner, ranges)
            failures = (
                0 if any(each.is_lost or len(each.offsets) for each in written) else failures + 1
            )
            if failures == _MAX_FAILURES:
                raise RetriableError("cannot read the store", reason=written[0].reason)
            for each in written:
                yield from self._unread(each, queue)
            left_bytes = sum(each.size_bytes for each in queue)
            yield ExportProgress(
                done_bytes=total_bytes - left_bytes,
                total_bytes=total_bytes,
                files_left=len(queue),
                undecodable_count=sum(each.undecodable_count for each in written),
            )

    def _unread(self, written: WrittenFiles, queue: deque[FileRange]) -> Iterator[SkippedRange]:
        """Queue the rest of a range; yield its unreadable part unless another attempt follows."""
        unreadable, file_range = written.unreadable, written.file_range
        if unreadable is None:
            return
        failures = 0 if len(written.offsets) else file_range.failures
        if not written.is_lost and failures + 1 < _MAX_FAILURES:
            left = file_range.rest(unreadable.start_offset, failures=failures + 1)
            queue.extend([] if left is None else [left])
            return
        tip = file_range.topic_id_partition
        # `add_lines` has recorded this part.
        yield SkippedRange.of(tip, unreadable, cause_of(written), written.reason)
        left = file_range.rest(unreadable.end_offset)
        if left is not None:
            queue.appendleft(left)

    def _export(
        self, planner: Planner, ranges: Sequence[FileRange]
    ) -> Generator[ExportEvent, None, list[WrittenFiles]]:
        """Write the files of these ranges and add the written offsets to the manifest."""
        attempt = self._manifest.new_attempt(datetime.now(UTC))
        work = RowsToWrite.of(
            self._connection,
            self._options,
            by_date=self._settings.by_date,
            decoding=self._settings.decoding,
        )
        planned = self._plan_again(planner, ranges)
        try:
            written = write_files(
                self._spark, self._files, self._manifest.directory(attempt), work, planned
            )
        except BaseException:
            with suppress(*SPARK_ERRORS, OSError):
                self._manifest.discard(attempt)
            raise
        try:
            for added in add_lines(self._manifest, self._losses, written, self._format, attempt):
                self._done.append(added)
                yield added
        except (FencedError, InvalidConfigError):
            self._manifest.discard(attempt)
            raise
        self._manifest.discard(attempt)
        return written

    def _plan_again(self, planner: Planner, ranges: Sequence[FileRange]) -> list[FileRange]:
        """Plan the ranges again from what is stored now, and lease them."""
        pieces: dict[TopicIdPartition, Sequence[Piece]] = {}
        for tip, offsets in hulls(ranges).items():
            # A range that expired since the first plan fails when a task reads it.
            with suppress(NotFoundError):
                tasks = planner.tasks(_bounded(self._planning, tip, offsets))
                pieces[tip] = [piece for task in tasks for piece in task]
        return [
            each.planned_again(pieces[each.topic_id_partition])
            if each.topic_id_partition in pieces
            else each
            for each in ranges
        ]


def next_ranges(
    queue: deque[FileRange], at_once: int, pause: Callable[[float], None]
) -> list[FileRange]:
    """Take the next ranges; first call `pause` with a number of seconds if any of them failed.

    The pause grows with the highest number of failures of any range, up to 30 seconds.
    """
    ranges = [queue.popleft() for _ in range(min(at_once, len(queue)))]
    failures = max((each.failures for each in ranges), default=0)
    if failures:
        pause(min(_FIRST_PAUSE_S * _PAUSE_GROWTH ** (failures - 1), _LONGEST_PAUSE_S))
    return ranges


def _skipped_hole(hole: Hole) -> SkippedRange:
    return SkippedRange.of(
        hole.topic_id_partition, hole.offsets, SkipCause.UNREADABLE, hole.error().message
    )


def _bounded(options: ReadOptions, tip: TopicIdPartition, offsets: OffsetRange) -> ReadOptions:
    """Return the options for a part of a partition, so that the plan leases nothing else."""
    named = (tip.topic, tip.partition)
    return replace(
        options,
        partitions={tip.topic: frozenset({tip.partition})},
        starting=OffsetBounds(default=EARLIEST_OFFSET, named={named: offsets.start_offset}),
        ending=OffsetBounds(default=EARLIEST_OFFSET, named={named: offsets.end_offset}),
    )
