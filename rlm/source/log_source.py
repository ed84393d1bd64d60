"""Defines LogSource: a broker's partitions, their segments, and consistent reads of a segment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from rlm.facts.local_log import CommittedTail, LocalLog, LocalSegment, LogFileSize, LogPosition
from rsm.segment.batches.index_builder import IndexedBatch
from rsm.segment.epochs import Lineage
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import AbortedTransaction, LogSegmentData, SizedSource
from rsm.segment.ranges import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBatches(CommittedTail):
    """Represents the next whole batches of a file, rolled or active, to continue a segment.

    `position` is the start of a batch; the batches begin there or later. They have at most
    `max_bytes` unless the first is larger. `size_bytes` is the size that the file had at least.
    `ends_file`: the file is rolled, and `offsets` end with it. The part can then be empty, if
    compaction removed the last batches.
    """

    position: int
    max_bytes: int
    ends_file: bool


class OpenSegment(Protocol):
    """Represents an open segment, whose file the broker may delete or rename."""

    @property
    def data(self) -> LogSegmentData:
        """Return the log's content and indexes.

        Reads of the content check each batch's CRC, offsets and leader epoch. The offsets are those
        of whole batches. A part may begin below the wanted start; in the active segment's file, it
        may end below the wanted end.
        """

    @property
    def max_timestamp_ms(self) -> int:
        """Return the batches' greatest timestamp; the file's modification time if none has one.

        A listing takes it from the time index, which may be wrong.
        """

    def verify_unchanged(self) -> None:
        """Raise RetriableError if the file changed after it was opened; call it after all reads."""


class OpenPart(Protocol):
    """Represents committed whole batches of one open file, as a part of a longer segment."""

    @property
    def file_base_offset(self) -> int:
        """Return the base offset of the file, which identifies it."""

    @property
    def first_entry_id(self) -> int:
        """Return how many batches of the file precede the part."""

    @property
    def offsets(self) -> OffsetRange:
        """Return the offsets of the batches. They may begin below the wanted offset."""

    @property
    def log(self) -> SizedSource:
        """Return the content. Reads of it check each batch's CRC, offsets and leader epoch."""

    @property
    def transaction_index(self) -> bytes | None:
        """Return the entries whose markers are in the part; None if the file has no index."""

    @property
    def aborted_transactions(self) -> tuple[AbortedTransaction, ...]:
        """Return all aborted transactions that overlap the part."""

    @property
    def modified_ms(self) -> int:
        """Return when the file was last written."""

    @property
    def following(self) -> LogPosition:
        """Return the position after the part."""

    def headers(self) -> Iterator[IndexedBatch]:
        """Read the header of each batch, in order. Raises the errors of the content."""

    def verify_unchanged(self) -> None:
        """Raise RetriableError if the file changed after it was opened; call it after all reads."""


class LogSource(ABC):
    """Represents the logs of one broker. All methods are thread-safe."""

    @abstractmethod
    def partitions(self) -> tuple[TopicIdPartition, ...]:
        """Return the partitions with a log; omit future, stray, deleted and KRaft metadata ones.

        Raises RetriableError if a log dir cannot be read, because its partitions are unknown.
        """

    @abstractmethod
    def local_log(self, topic_id_partition: TopicIdPartition) -> LocalLog:
        """List one partition's log.

        Raises NotFoundError if no log dir contains it. Raises RetriableError if its directory
        cannot be read now: an offline log dir does not count as empty.
        """

    @abstractmethod
    def file_sizes(
        self, topic_id_partition: TopicIdPartition, from_offset: int
    ) -> tuple[LogFileSize, ...]:
        """List the log file that contains `from_offset`, and all later ones.

        Lists all files if `from_offset` is below them. The files ascend, and end with the active
        one. Reads no file's content, so you may call it often. Raises the errors of `local_log`.
        """

    @abstractmethod
    def open_segment(
        self,
        topic_id_partition: TopicIdPartition,
        segment: LocalSegment,
        lineage: Lineage,
        last_stable_offset: int,
    ) -> AbstractContextManager[OpenSegment]:
        """Open a rolled segment or a committed tail for copying.

        Reads the indexes without preallocated zeros and checks them against the log. Rebuilds wrong
        indexes, and the indexes of a part. A missing producer snapshot or transaction index is
        recorded as absent, and so is the snapshot of a committed tail. Collects aborted
        transactions from this and later transaction indexes. They are complete, because the segment
        must end at or below `last_stable_offset`, which the caller fetched before this call.

        Raises NotFoundError if the segment is gone, RetriableError if it differs from the listing
        or cannot be read now, CorruptError if its content is invalid.
        """

    @abstractmethod
    def open_part(
        self,
        topic_id_partition: TopicIdPartition,
        begin: LogPosition,
        end_offset: int,
        lineage: Lineage,
        *,
        max_bytes: int,
    ) -> AbstractContextManager[OpenPart]:
        """Open the next committed batches of the file that contains `begin`.

        The part ends at the file's end, at or below `end_offset`, or at `max_bytes`. It has at
        least one batch, unless compaction removed the file's last batches. The caller took
        `end_offset` from the high watermark and the last stable offset before this call, so the
        aborted transactions are complete.

        Raises NotFoundError if the offset was deleted. Raises RetriableError if there is no whole
        batch yet, or the file cannot be read now. Raises CorruptError if its content is invalid.
        """
