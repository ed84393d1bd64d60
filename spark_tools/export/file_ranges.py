"""Assigns offsets to files: joins pieces of segments into files of at most `file_bytes`. Pure.

A file contains one contiguous range of offsets, in order. If offsets are missing, one file ends
below them, and the next file begins above them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.ranges import OffsetRange
from spark_tools.export.ranges import ExportedRange, ExportFormat, PlannedRange
from spark_tools.reading.plan import Hole, Piece, SegmentPiece


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRange:
    """Represents offsets of a partition for one file, or for one or more files per date.

    `pieces` ascend. `failures` counts consecutive temporary failures to read the first offset.
    """

    topic_id_partition: TopicIdPartition
    offsets: OffsetRange
    pieces: tuple[SegmentPiece | Hole, ...]
    failures: int = 0

    @property
    def size_bytes(self) -> int:
        """Return the approximate size of the range in the store."""
        return sum(each.size_bytes for each in self.pieces if isinstance(each, SegmentPiece))

    def planned_again(self, pieces: Iterable[Piece]) -> FileRange:
        """Return the same offsets with the pieces of a newer plan."""
        return replace(self, pieces=_within(pieces, self.topic_id_partition, self.offsets))

    def rest(self, start_offset: int, *, failures: int = 0) -> FileRange | None:
        """Return the part of the range from `start_offset`; None if nothing is stored there."""
        if start_offset >= self.offsets.end_offset:
            return None
        offsets = replace(self.offsets, start_offset=start_offset)
        pieces = _within(self.pieces, self.topic_id_partition, offsets)
        return replace(self, offsets=offsets, pieces=pieces, failures=failures) if pieces else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFiles:
    """Represents the outcome of a FileRange: the files of its offsets below `end_offset`.

    `names` are relative to the attempt's directory. `unreadable` is the range that could not be
    read for `reason`; it begins at `end_offset`. Another attempt may succeed unless `is_lost`.
    `undecodable_count` counts records with a decoding error in a column.
    """

    file_range: FileRange
    end_offset: int
    records_count: int
    names: tuple[str, ...]
    unreadable: OffsetRange | None = None
    reason: str = ""
    is_lost: bool = False
    undecodable_count: int = 0

    @property
    def offsets(self) -> OffsetRange:
        """Return the offsets whose records are all in the files."""
        return replace(self.file_range.offsets, end_offset=self.end_offset)

    def named(self) -> tuple[str, ...]:
        """Return the files' final names, relative to the partition's path."""
        first, end = self.offsets.start_offset, self.end_offset
        split = [name.rpartition("/") for name in self.names]
        return tuple(
            f"{directory}{slash}{first:020d}-{end:020d}-{name}" for directory, slash, name in split
        )


def written_name(file: str) -> str:
    """Return a file's name without its offsets, as the task wrote it."""
    directory, slash, name = file.rpartition("/")
    return f"{directory}{slash}{name.split('-', 2)[2]}"


def cut(
    planned: Iterable[PlannedRange], pieces: Iterable[Piece], file_bytes: int
) -> Iterator[FileRange | Hole]:
    """Cut planned ranges into files of at most `file_bytes`; also yield missing ranges.

    A larger piece becomes a separate file.
    """
    by_partition: dict[TopicIdPartition, list[Piece]] = {}
    for piece in pieces:
        by_partition.setdefault(piece.topic_id_partition, []).append(piece)
    for each in planned:
        tip = each.topic_id_partition
        yield from _cut(each, _within(by_partition.get(tip, []), tip, each.offsets), file_bytes)


def _cut(
    planned: PlannedRange, pieces: Sequence[SegmentPiece | Hole], file_bytes: int
) -> Iterator[FileRange | Hole]:
    tip, start_offset = planned.topic_id_partition, planned.offsets.start_offset
    gathered: list[SegmentPiece | Hole] = []
    gathered_bytes = 0
    for piece in pieces:
        size_bytes = piece.size_bytes if isinstance(piece, SegmentPiece) else 0
        is_full = gathered_bytes + size_bytes > file_bytes
        if gathered and (is_full or isinstance(piece, Hole)):
            offsets = OffsetRange(start_offset=start_offset, end_offset=piece.offsets.start_offset)
            yield FileRange(topic_id_partition=tip, offsets=offsets, pieces=tuple(gathered))
            start_offset, gathered, gathered_bytes = offsets.end_offset, [], 0
        if isinstance(piece, Hole):
            yield piece
            start_offset = piece.offsets.end_offset
        else:
            gathered.append(piece)
            gathered_bytes += size_bytes
    if gathered:
        offsets = replace(planned.offsets, start_offset=start_offset)
        yield FileRange(topic_id_partition=tip, offsets=offsets, pieces=tuple(gathered))


def lines_of(
    written: Iterable[WrittenFiles], wanted: ExportFormat, attempt: str
) -> list[ExportedRange]:
    """Return a manifest line for each contiguous range of the written files."""
    whole = [each for each in written if len(each.offsets)]
    whole.sort(key=lambda each: (each.file_range.topic_id_partition, each.offsets))
    lines: list[ExportedRange] = []
    for each in whole:
        line = _line(each, wanted, attempt)
        if lines and _continues(line, lines[-1]):
            last = lines.pop()
            line = replace(
                last,
                end_offset=line.end_offset,
                records_count=last.records_count + line.records_count,
                files=(*last.files, *line.files),
            )
        lines.append(line)
    return lines


def _continues(line: ExportedRange, last: ExportedRange) -> bool:
    same = (line.topic_id, line.partition) == (last.topic_id, last.partition)
    return same and line.start_offset == last.end_offset


def _line(written: WrittenFiles, wanted: ExportFormat, attempt: str) -> ExportedRange:
    tip = written.file_range.topic_id_partition
    topic_id = id_to_text(tip.topic_id)
    return ExportedRange(
        topic=tip.topic,
        topic_id=topic_id,
        partition=tip.partition,
        start_offset=written.offsets.start_offset,
        end_offset=written.end_offset,
        records_count=written.records_count,
        columns=wanted.columns,
        isolation=wanted.isolation,
        partition_by=wanted.partition_by,
        path=f"data/topic={tip.topic}/topic_id={topic_id}/partition={tip.partition}",
        files=written.named(),
        attempt=attempt,
    )


def hulls(files: Iterable[FileRange]) -> Mapping[TopicIdPartition, OffsetRange]:
    """Return the smallest range per partition that contains the offsets of its files."""
    found: dict[TopicIdPartition, OffsetRange] = {}
    for each in files:
        tip, offsets = each.topic_id_partition, each.offsets
        known = found.get(tip, offsets)
        found[tip] = OffsetRange(
            start_offset=min(known.start_offset, offsets.start_offset),
            end_offset=max(known.end_offset, offsets.end_offset),
        )
    return found


def _within(
    pieces: Iterable[Piece], partition: TopicIdPartition, offsets: OffsetRange
) -> tuple[SegmentPiece | Hole, ...]:
    """Return the parts of a partition's pieces within a range; omit pieces of brokers' logs."""
    return tuple(
        replace(piece, offsets=piece.offsets.intersection(offsets))
        for piece in pieces
        if isinstance(piece, SegmentPiece | Hole)
        and piece.topic_id_partition == partition
        and piece.offsets.overlaps(offsets)
    )
