"""Reads the log dirs of a running broker, as a LogSource.

Opens a segment in this order, so that its parts are consistent although the broker writes, renames
and deletes meanwhile:

1. The log file, by descriptor: from then on, a rename or deletion does not change its content.
2. One listing. A rolled segment must have the expected end offset in it.
3. Indexes, transactions and producer snapshot.
4. The log file must still have its name. The broker renames a segment's log before its indexes,
   and earlier segments before later ones. So an index that was not found in 3 did not exist; it
   was not deleted meanwhile.

After the last byte, `verify_unchanged` repeats 2 and 4, but accepts a deletion by the broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from rlm.facts.local_log import CommittedTail, LocalLog, LocalSegment, LogFileSize, LogPosition
from rlm.source.log_file import CHUNK_BYTES, LogFile
from rlm.source.log_listing import ListedLog, list_file_sizes, list_log
from rlm.source.log_part import OpenLogDirPart, next_batches
from rlm.source.log_source import LogSource, OpenPart, OpenSegment
from rlm.source.partition_dirs import PartitionDirs
from rlm.source.partition_files import LOG_SUFFIX, list_partition_files, segment_path
from rlm.source.producer_snapshots import read_producer_snapshot
from rlm.source.segment_indexes import read_segment_indexes
from rlm.source.segment_transactions import read_segment_transactions
from rsm.segment.clock import Clock
from rsm.segment.epochs import Lineage
from rsm.segment.errors import NotFoundError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import LogSegmentData, SegmentCompanions


class LogDirSource(LogSource):
    """Represents the partitions in a broker's log dirs.

    Caches the last listing of each listed partition. An open segment uses one
    descriptor and memory for its companions; a pass uses `chunk_bytes` and at most one batch more.
    """

    def __init__(
        self, log_dirs: Sequence[Path], *, clock: Clock, chunk_bytes: int = CHUNK_BYTES
    ) -> None:
        self._dirs = PartitionDirs(log_dirs)
        self._clock = clock
        self._chunk_bytes = chunk_bytes
        self._listed: dict[TopicIdPartition, ListedLog] = {}

    def partitions(self) -> tuple[TopicIdPartition, ...]:
        here = self._dirs.partitions()
        for gone in set(self._listed).difference(here):
            self._listed.pop(gone, None)
        return here

    def local_log(self, topic_id_partition: TopicIdPartition) -> LocalLog:
        directory = self._dirs.find(topic_id_partition)
        with _unreadable_is_retriable(directory):
            listed = list_log(directory, self._listed.get(topic_id_partition))
        self._listed[topic_id_partition] = listed
        return listed.log

    def file_sizes(
        self, topic_id_partition: TopicIdPartition, from_offset: int
    ) -> tuple[LogFileSize, ...]:
        directory = self._dirs.find(topic_id_partition)
        with _unreadable_is_retriable(directory):
            return list_file_sizes(directory, from_offset)

    def open_segment(
        self,
        topic_id_partition: TopicIdPartition,
        segment: LocalSegment,
        lineage: Lineage,
        last_stable_offset: int,
    ) -> AbstractContextManager[OpenSegment]:
        return self._open(topic_id_partition, segment, lineage, last_stable_offset)

    @contextmanager
    def _open(
        self,
        topic_id_partition: TopicIdPartition,
        segment: LocalSegment,
        lineage: Lineage,
        last_stable_offset: int,
    ) -> Iterator[OpenSegment]:
        if segment.offsets.end_offset > last_stable_offset:
            raise RetriableError(
                "cannot open the segment: it reaches above the last stable offset",
                topic_id_partition=topic_id_partition,
                offsets=segment.offsets,
                last_stable_offset=last_stable_offset,
            )
        directory = self._dirs.find(topic_id_partition)
        path = segment_path(directory, segment.file_base_offset, LOG_SUFFIX)
        with _unreadable_is_retriable(directory):
            log = _open_log(path, segment, lineage, self._chunk_bytes)
        try:
            with _unreadable_is_retriable(directory):
                opened = _OpenLogDirSegment(log, directory, segment, lineage, self._clock)
            yield opened
        finally:
            log.close()

    def open_part(
        self,
        topic_id_partition: TopicIdPartition,
        begin: LogPosition,
        end_offset: int,
        lineage: Lineage,
        *,
        max_bytes: int,
    ) -> AbstractContextManager[OpenPart]:
        return self._open_part(topic_id_partition, begin, end_offset, lineage, max_bytes)

    @contextmanager
    def _open_part(
        self,
        topic_id_partition: TopicIdPartition,
        begin: LogPosition,
        end_offset: int,
        lineage: Lineage,
        max_bytes: int,
    ) -> Iterator[OpenPart]:
        directory = self._dirs.find(topic_id_partition)
        with _unreadable_is_retriable(directory):
            files = list_partition_files(directory)
            wanted = next_batches(files, begin, end_offset, max_bytes=max_bytes)
            path = files.path(wanted.file_base_offset, LOG_SUFFIX)
            log = _open_log(path, wanted, lineage, self._chunk_bytes)
        try:
            with _unreadable_is_retriable(directory):
                opened = OpenLogDirPart(log, files, wanted, begin)
            yield opened
        finally:
            log.close()


class _OpenLogDirSegment:
    """Represents an open segment of a log dir; see `OpenSegment`. Does not own the log file."""

    def __init__(
        self, log: LogFile, directory: Path, segment: LocalSegment, lineage: Lineage, clock: Clock
    ) -> None:
        self._log = log
        self._directory = directory
        self._segment = segment
        files = list_partition_files(directory)
        offsets = log.part.offsets
        _require_end(files.next_base_offset(segment.file_base_offset), segment, directory)
        indexes = read_segment_indexes(log, files, segment)
        transactions = read_segment_transactions(files, segment.file_base_offset, offsets)
        snapshot = (
            None
            if isinstance(segment, CommittedTail)
            else read_producer_snapshot(files, offsets.end_offset, clock)
        )
        if not log.is_in_place():
            raise NotFoundError(
                "cannot open the segment: it was deleted meanwhile",
                directory=directory,
                offsets=segment.offsets,
            )
        timestamp_ms = indexes.max_timestamp_ms
        self._max_timestamp_ms = log.modified_ms if timestamp_ms < 0 else timestamp_ms
        self._data = LogSegmentData(
            offsets=offsets,
            log=log,
            companions=SegmentCompanions(
                offset_index=indexes.offset_index.to_bytes(),
                time_index=indexes.time_index.to_bytes(),
                transaction_index=transactions.transaction_index,
                producer_snapshot=snapshot,
                lineage=lineage,
                aborted_transactions=transactions.aborted_transactions,
            ),
            batches=log.batches,
        )

    @property
    def data(self) -> LogSegmentData:
        return self._data

    @property
    def max_timestamp_ms(self) -> int:
        return self._max_timestamp_ms

    def verify_unchanged(self) -> None:
        with _unreadable_is_retriable(self._directory):
            self._log.require_unwritten()
            if self._log.is_in_place():
                files = list_partition_files(self._directory)
                base_offset = self._segment.file_base_offset
                _require_end(files.next_base_offset(base_offset), self._segment, self._directory)
            elif not self._log.is_being_deleted():
                raise RetriableError(
                    "cannot read the segment: its file no longer has its name",
                    directory=self._directory,
                    offsets=self._segment.offsets,
                )


def _open_log(path: Path, segment: LocalSegment, lineage: Lineage, chunk_bytes: int) -> LogFile:
    try:
        return LogFile(path, segment=segment, lineage=lineage, chunk_bytes=chunk_bytes)
    except FileNotFoundError as error:
        raise NotFoundError(
            "cannot open the segment: it no longer exists", path=path, offsets=segment.offsets
        ) from error


def _require_end(next_base_offset: int | None, segment: LocalSegment, directory: Path) -> None:
    """Require that the file ends as listed; a committed tail's file may have rolled after it."""
    end_offset = segment.offsets.end_offset
    is_behind = next_base_offset is None or next_base_offset >= end_offset
    if not (is_behind if isinstance(segment, CommittedTail) else next_base_offset == end_offset):
        raise RetriableError(
            "cannot read the segment: it does not end at its listed end offset",
            directory=directory,
            offsets=segment.offsets,
            next_base_offset=next_base_offset,
        )


@contextmanager
def _unreadable_is_retriable(directory: Path) -> Iterator[None]:
    """Convert OSError to RetriableError: the log dir failed, or the directory was moved."""
    try:
        yield
    except OSError as error:
        raise RetriableError(
            "cannot read the partition directory", directory=directory, reason=error
        ) from error
