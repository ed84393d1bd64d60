"""A broker's disk in memory: real segment bytes, listed and opened as `rlm.source.logdir` does."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from rlm.facts.local_log import (
    CommittedTail,
    LocalLog,
    LocalSegment,
    LogFileSize,
    LogPosition,
    RolledSegment,
)
from rlm.source.log_source import LogSource, OpenPart, OpenSegment
from rsm.segment.batches.batch import BatchHeader, scan_batches
from rsm.segment.batches.scanner import SegmentScanner
from rsm.segment.epochs import Lineage
from rsm.segment.errors import NotFoundError, RetriableError
from rsm.segment.ids import TopicIdPartition
from rsm.segment.local_segment import AbortedTransaction, LogSegmentData, SegmentCompanions
from rsm.segment.ranges import OffsetRange
from tests.fakes.replica import Replica, SegmentFile, batch_header
from tests.segment_builder import build_segment

_PIECE_BYTES = 700  # smaller than a segment, so that a reader sees more than one piece


class MemoryLogSource(LogSource):
    """The replicas of one broker, which a test may append to, roll and truncate at any moment."""

    def __init__(self, replicas: Mapping[TopicIdPartition, Replica]) -> None:
        self._replicas = replicas

    def partitions(self) -> tuple[TopicIdPartition, ...]:
        return tuple(tip for tip, replica in self._replicas.items() if not replica.deleted)

    def local_log(self, topic_id_partition: TopicIdPartition) -> LocalLog:
        replica = self._replica(topic_id_partition)
        return LocalLog(
            rolled=_rolled(replica),
            active_base_offset=replica.files[-1].base_offset,
            active_size_bytes=replica.files[-1].size_bytes,
            active_written_ms=replica.files[-1].max_timestamp_ms,
            checkpoint=replica.checkpoint,
        )

    def file_sizes(
        self, topic_id_partition: TopicIdPartition, from_offset: int
    ) -> tuple[LogFileSize, ...]:
        files = self._replica(topic_id_partition).files
        first = max(0, sum(file.base_offset <= from_offset for file in files) - 1)
        return tuple(
            LogFileSize(base_offset=file.base_offset, size_bytes=file.size_bytes)
            for file in files[first:]
        )

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
        self, tip: TopicIdPartition, segment: LocalSegment, lineage: Lineage, last_stable: int
    ) -> Iterator[OpenSegment]:
        if segment.offsets.end_offset > last_stable:
            raise RetriableError("segment reaches above the last stable offset")
        replica = self._replica(tip)
        end_offset = segment.offsets.end_offset
        is_tail = isinstance(segment, CommittedTail)
        for file, bounds in zip_longest(replica.on_disk, _bounds(replica)):
            same_end = is_tail or (bounds is not None and bounds.end_offset == end_offset)
            same_size = is_tail or file.size_bytes == segment.size_bytes
            if file.base_offset == segment.file_base_offset and same_end and same_size:
                yield _MemoryOpenSegment(file, segment, lineage, replica.producer_snapshot)
                return
        raise NotFoundError("segment no longer exists", partition=tip, offsets=segment.offsets)

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
        tip: TopicIdPartition,
        begin: LogPosition,
        end_offset: int,
        lineage: Lineage,
        max_bytes: int,
    ) -> Iterator[OpenPart]:
        files = [f for f in self._replica(tip).on_disk if f.base_offset <= begin.offset]
        if not files:
            raise NotFoundError("the offset is deleted", partition=tip, offset=begin.offset)
        yield _MemoryOpenPart(files[-1], begin, end_offset, lineage, max_bytes)

    def _replica(self, tip: TopicIdPartition) -> Replica:
        replica = self._replicas.get(tip)
        if replica is None or replica.deleted:
            raise NotFoundError("partition is not here", partition=tip)
        if replica.offline:
            raise RetriableError("log dir is offline", partition=tip)
        return replica


class _MemoryOpenSegment:
    """Keeps the file's content as it was when it was opened, even if the log loses the file."""

    def __init__(
        self, file: SegmentFile, segment: LocalSegment, lineage: Lineage, snapshot: bytes | None
    ) -> None:
        batches, offsets = _batches_of(file, segment)
        built = build_segment(batches, base_offset=offsets.start_offset)
        is_tail = isinstance(segment, CommittedTail)
        self._held = _HeldFile(file=file, writes=None if is_tail else file.writes)
        self.max_timestamp_ms = file.max_timestamp_ms
        self.data = LogSegmentData(
            offsets=offsets,
            log=_CheckedContent(held=self._held, content=built.log, base=offsets, lineage=lineage),
            companions=SegmentCompanions(
                offset_index=built.offset_index,
                time_index=built.time_index,
                transaction_index=built.transaction_index or None,
                producer_snapshot=None if is_tail else snapshot,
                lineage=lineage,
                aborted_transactions=(),
            ),
        )

    def verify_unchanged(self) -> None:
        self._held.verify_unchanged()


class _MemoryOpenPart:
    """The next whole batches of a file, as they were when it was opened."""

    def __init__(
        self,
        file: SegmentFile,
        begin: LogPosition,
        end_offset: int,
        lineage: Lineage,
        max_bytes: int,
    ) -> None:
        ends = [batch_header(batch).next_offset for batch in file.batches]
        first = bisect_right(ends, begin.offset)
        last, size_bytes = first, 0
        for batch, end in zip(file.batches[first:], ends[first:], strict=True):
            if end > end_offset or (size_bytes and size_bytes + len(batch) > max_bytes):
                break
            last, size_bytes = last + 1, size_bytes + len(batch)
        if last == first:
            raise RetriableError("the range has no whole batch to copy", offset=begin.offset)
        batches = file.batches[first:last]
        self.file_base_offset = file.base_offset
        self.first_entry_id = first
        self.offsets = OffsetRange(
            start_offset=min(begin.offset, batch_header(batches[0]).base_offset),
            end_offset=ends[last - 1],
        )
        self._held = _HeldFile(file=file, writes=file.writes)
        content = b"".join(batches)
        self.log = _CheckedContent(
            held=self._held, content=content, base=self.offsets, lineage=lineage
        )
        self.transaction_index: bytes | None = None
        self.aborted_transactions: tuple[AbortedTransaction, ...] = ()
        self.modified_ms = file.max_timestamp_ms
        self.following = LogPosition(
            offset=self.offsets.end_offset,
            file_base_offset=file.base_offset,
            position=sum(len(batch) for batch in file.batches[:last]),
            entry_id=last,
        )

    def headers(self) -> Iterator[BatchHeader]:
        for _, header in scan_batches(memoryview(self.log.content)):
            yield header

    def verify_unchanged(self) -> None:
        self._held.verify_unchanged()


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldFile:
    """A file; `writes` is None while the file is still being written."""

    file: SegmentFile
    writes: int | None

    def verify_unchanged(self) -> None:
        if self.writes is not None and self.file.writes != self.writes:
            raise RetriableError("segment was written to while it was read")


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckedContent:
    """Yields the bytes in pieces, and fails before the last one if they are no valid segment."""

    held: _HeldFile
    content: bytes
    base: OffsetRange
    lineage: Lineage

    @property
    def length_bytes(self) -> int:
        return len(self.content)

    def chunks(self) -> Iterator[memoryview]:
        scanner = SegmentScanner(base_offset=self.base.start_offset, lineage=self.lineage)
        view = memoryview(self.content)
        for position in range(0, len(view), _PIECE_BYTES):
            piece = view[position : position + _PIECE_BYTES]
            scanner.feed(piece)
            if position + len(piece) == len(view):
                self.held.verify_unchanged()
                scanner.finish()
            yield piece


def _batches_of(file: SegmentFile, segment: LocalSegment) -> tuple[list[bytes], OffsetRange]:
    """Return the whole batches of a segment, which may be a part of the file, and their offsets."""
    wanted = segment.offsets
    ends = [batch_header(batch).next_offset for batch in file.batches]
    batches = [
        batch
        for batch, end in zip(file.batches, ends, strict=True)
        if wanted.start_offset < end <= wanted.end_offset
    ]
    if not isinstance(segment, CommittedTail):
        begin = batch_header(batches[0]).base_offset if batches else wanted.start_offset
        return batches, replace(wanted, start_offset=min(wanted.start_offset, begin))
    if not batches:
        raise RetriableError("the range has no whole batch to copy", offsets=wanted)
    return batches, OffsetRange(
        start_offset=min(wanted.start_offset, batch_header(batches[0]).base_offset),
        end_offset=batch_header(batches[-1]).next_offset,
    )


def _bounds(replica: Replica) -> list[OffsetRange]:
    """Return the offsets of the rolled files: each ends where the next begins."""
    bases = [file.base_offset for file in replica.on_disk]
    return [OffsetRange(start_offset=base, end_offset=end) for base, end in pairwise(bases)]


def _rolled(replica: Replica) -> tuple[RolledSegment, ...]:
    return tuple(
        RolledSegment(
            file_base_offset=offsets.start_offset,
            offsets=offsets,
            size_bytes=file.size_bytes,
            max_timestamp_ms=file.max_timestamp_ms,
            rolled_ms=file.max_timestamp_ms,
        )
        for file, offsets in zip(replica.on_disk, _bounds(replica), strict=False)
    )
