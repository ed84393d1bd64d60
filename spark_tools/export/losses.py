"""Tracks which skipped ranges are lost permanently, and reports each loss once.

A range that was never exported is lost when it expires. An export records each skipped range before
it exports anything above the range, because afterwards the manifest alone does not show the loss.
A loss is final only when the export that reports it has finished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from rsm.segment.ids import TopicIdPartition, id_to_text
from rsm.segment.ranges import OffsetRange
from spark_tools.export.file_ranges import WrittenFiles, lines_of
from spark_tools.export.manifest import Manifest
from spark_tools.export.ranges import ExportedRange, ExportFormat, PlannedRange, by_partition, lost
from spark_tools.export.skipped import (
    Partition,
    SkipCause,
    SkippedRange,
    SkippedRanges,
    expired,
    unexported,
)
from spark_tools.stored_partition import StoredPartition


class ExportLosses:
    """Represents the losses of one export.

    `done` are the manifest's lines; the caller adds lines during the export.
    """

    def __init__(self, record: SkippedRanges, done: Sequence[ExportedRange]) -> None:
        self._record = record
        self._done = done
        self._found: list[SkippedRange] = []
        self._gaps: dict[Partition, list[OffsetRange]] = {}

    def expired_now(
        self,
        stored: Iterable[StoredPartition],
        planned: Iterable[PlannedRange],
        begins_with_log: Callable[[TopicIdPartition], bool],
    ) -> list[SkippedRange]:
        """Return the ranges that expired unexported, unless an earlier export reported them.

        `begins_with_log` returns whether the user exports a partition from its log start offset.
        Otherwise, the user has excluded the offsets below the starting offset.
        """
        starts: dict[Partition, int] = {}
        for each in stored:
            key = _key(each.topic_id_partition)
            starts[key] = each.state.first_readable_offset or 0
            self._gaps[key] = [gap.offsets for gap in each.state.gaps]
        exported = by_partition(self._done)
        known = {key: list(gaps) for key, gaps in self._gaps.items()}
        for on_record in self._record.ranges():
            known.setdefault(on_record.key, []).append(on_record.offsets)
        for part in planned:
            tip = part.topic_id_partition
            if begins_with_log(tip):
                key = _key(tip)
                self._found += [
                    SkippedRange.of(
                        tip, offsets, SkipCause.EXPIRED, "expired before it was exported"
                    )
                    for offsets in lost(part, exported.get(key, ()), known.get(key, ()))
                ]
        return expired(self._outstanding(), starts)

    def skip(self, skipped: SkippedRange) -> None:
        """Add a range that could not be exported."""
        self._found.insert(0, skipped)

    def begin(self, skipped: Iterable[SkippedRange]) -> None:
        """Record ranges that cannot be exported, before ranges above them are exported."""
        for each in skipped:
            self.skip(each)
        self._write()

    def record_unread(self, written: Iterable[WrittenFiles]) -> None:
        """Record the unread parts of ranges, before the manifest contains lines above them.

        If another attempt exports a part, a later write removes its record.
        """
        unread = [part for each in written for part in _unread(each)]
        for part in unread:
            self.skip(part)
        if unread:
            self._write()

    def finish(self, reported: Iterable[SkippedRange]) -> None:
        """Record the outcome; the reported ranges are final."""
        self._found = [*reported, *self._found]
        self._write()

    def _write(self) -> None:
        """Record the ranges that are neither exported nor in a recorded gap."""
        self._record.replace(self._outstanding())

    def _outstanding(self) -> list[SkippedRange]:
        recorded = {key: list(offsets) for key, offsets in self._gaps.items()}
        for line in self._done:
            recorded.setdefault((line.topic_id, line.partition), []).append(line.offsets)
        return unexported([*self._found, *self._record.ranges()], recorded)


def add_lines(
    manifest: Manifest,
    losses: ExportLosses,
    written: Sequence[WrittenFiles],
    wanted: ExportFormat,
    attempt: str,
) -> Iterator[ExportedRange]:
    """Record the unread parts, then add the written files to the manifest; yield each line.

    The caller must add each line to the `done` of `losses`. Raises the errors of Manifest.add.
    """
    losses.record_unread(written)
    for line in lines_of(written, wanted, attempt):
        yield manifest.add(line)


def _unread(written: WrittenFiles) -> Iterator[SkippedRange]:
    """Yield the unreadable part of a range, and the part above it that was not read."""
    if written.unreadable is None:
        return
    file_range = written.file_range
    tip = file_range.topic_id_partition
    yield SkippedRange.of(tip, written.unreadable, cause_of(written), written.reason)
    left = file_range.rest(written.unreadable.end_offset)
    if left is not None:
        yield SkippedRange.of(tip, left.offsets, SkipCause.FAILED, "the export did not finish")


def cause_of(written: WrittenFiles) -> SkipCause:
    """Return the cause of the unreadable range of `written`."""
    return SkipCause.UNREADABLE if written.is_lost else SkipCause.FAILED


def _key(tip: TopicIdPartition) -> Partition:
    return id_to_text(tip.topic_id), tip.partition
