"""A range that expires before its export is reported once, whatever is exported above it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlmm.state.gaps import GapReason, RecordedGap
from rlmm.state.partition_state import PartitionState
from rsm.segment.epochs import Lineage
from rsm.segment.ranges import OffsetRange
from spark_tools.export.file_ranges import FileRange, WrittenFiles
from spark_tools.export.losses import ExportLosses, add_lines
from spark_tools.export.manifest import Manifest
from spark_tools.export.ranges import ExportedRange
from spark_tools.export.skipped import SkipCause, SkippedRange, SkippedRanges
from spark_tools.stored_partition import StoredPartition
from tests.metadata_builder import ORDERS, log_starts
from tests.unit.spark_tools.export.test_manifest import FORMAT, NOW
from tests.unit.spark_tools.export.test_ranges import done, piece, planned
from tests.unit.spark_tools.local_files import KilledError, LocalFiles


def stored(log_start_offset: int, *gaps: tuple[int, int]) -> StoredPartition:
    recorded = tuple(
        RecordedGap(offsets=offsets(*each), reason=GapReason.ACCEPTED_LOSS, recorded_ms=1)
        for each in gaps
    )
    state = PartitionState(
        lineage=Lineage.of((0, 0)),
        log_starts=log_starts(log_start_offset),
        recorded_gaps=recorded,
        gaps_epoch=0,
    )
    return StoredPartition(topic_id_partition=ORDERS, state=state, segments=())


def offsets(start: int, end: int) -> OffsetRange:
    return OffsetRange(start_offset=start, end_offset=end)


def unreadable(start: int, end: int) -> SkippedRange:
    return SkippedRange.of(ORDERS, offsets(start, end), SkipCause.UNREADABLE, "away")


def losses(directory: Path, exported: list[ExportedRange]) -> ExportLosses:
    return ExportLosses(SkippedRanges(LocalFiles(directory)), exported)


def expired(found: ExportLosses, partition: StoredPartition, start: int, end: int) -> list[str]:
    ranges = found.expired_now([partition], [planned(start, end)], lambda _: True)
    return [f"{each.offsets} {each.cause}" for each in ranges]


def test_expired_when_skipped_once_and_exported_above_then_reported_until_an_export_has_ended(
    tmp_path: Path,
) -> None:
    exported = done((0, 100))
    first = losses(tmp_path, exported)
    first.expired_now([stored(0)], [planned(100, 300)], lambda _: True)
    first.skip(unreadable(100, 200))
    exported += done((200, 300))
    first.finish([])

    killed = losses(tmp_path, exported)
    assert expired(killed, stored(150), 300, 400) == ["[100, 150) expired"]
    killed.begin([])
    exported += done((300, 400))
    second = losses(tmp_path, exported)
    lost = second.expired_now([stored(150)], [planned(400, 500)], lambda _: True)
    assert [str(each.offsets) for each in lost] == ["[100, 150)"]
    second.finish(lost)

    third = losses(tmp_path, exported)
    assert expired(third, stored(180), 400, 500) == ["[150, 180) expired"]


def test_expired_when_never_seen_by_an_export_then_on_record_before_more_is_exported(
    tmp_path: Path,
) -> None:
    exported = done((0, 100))
    killed = losses(tmp_path, exported)
    assert expired(killed, stored(200), 200, 300) == ["[100, 200) expired"]
    killed.begin([])
    exported += done((200, 300))

    assert expired(losses(tmp_path, exported), stored(250), 300, 400) == ["[100, 200) expired"]


class Counted(list[ExportedRange]):
    """Lines of a manifest, and the number of passes over them."""

    passes = 0

    def __iter__(self) -> Iterator[ExportedRange]:
        self.passes += 1
        return super().__iter__()


@pytest.mark.parametrize("ranges_count", [1, 30])
def test_expired_when_many_ranges_are_planned_then_lines_are_read_no_more_often(
    tmp_path: Path, ranges_count: int
) -> None:
    exported = Counted(done((0, 100)))
    ranges = [planned(start, start + 5) for start in range(200, 200 + 10 * ranges_count, 10)]

    losses(tmp_path, exported).expired_now([stored(150)], ranges, lambda _: True)

    assert exported.passes == 2


def test_record_when_exported_or_given_up_as_a_gap_then_nothing_is_left_of_it(
    tmp_path: Path,
) -> None:
    found = losses(tmp_path, [])
    found.skip(unreadable(0, 10))
    found.skip(unreadable(20, 30))
    found.finish([])

    later = losses(tmp_path, done((0, 10)))
    assert expired(later, stored(0, (20, 30)), 10, 50) == []
    later.finish([])

    assert SkippedRanges(LocalFiles(tmp_path)).ranges() == []


def test_begin_when_killed_after_more_was_exported_then_what_the_plan_skipped_is_reported(
    tmp_path: Path,
) -> None:
    exported: list[ExportedRange] = []
    killed = losses(tmp_path, exported)
    assert expired(killed, stored(0), 0, 300) == []
    killed.begin([unreadable(100, 200)])
    exported += done((0, 100), (200, 300))

    assert expired(losses(tmp_path, exported), stored(250), 300, 400) == ["[100, 200) expired"]


def attempted(files: LocalFiles, attempt: str) -> list[WrittenFiles]:
    """Write [0, 300) to two files: the first was read up to 50, and is damaged up to 60."""
    pieces = (piece(0, 60), piece(60, 100))
    damaged = FileRange(topic_id_partition=ORDERS, offsets=offsets(0, 100), pieces=pieces)
    whole = FileRange(topic_id_partition=ORDERS, offsets=offsets(100, 300), pieces=())
    found = [
        WrittenFiles(
            file_range=damaged,
            end_offset=50,
            records_count=50,
            names=("part-0-x",),
            unreadable=offsets(50, 60),
            reason="away",
            is_lost=True,
        ),
        WrittenFiles(file_range=whole, end_offset=300, records_count=200, names=("part-1-x",)),
    ]
    for each in found:
        files.write(f"{Manifest(files).directory(attempt)}/{each.names[0]}", "rows")
    return found


def test_add_lines_when_killed_at_any_point_then_what_they_lack_is_reported_when_it_expires(
    tmp_path: Path,
) -> None:
    """The report includes the file's later offsets, which the next run tries again."""
    kills = 0
    for changes in range(100):
        directory = tmp_path / str(changes)
        attempt = Manifest(LocalFiles(directory)).new_attempt(NOW)
        written = attempted(LocalFiles(directory), attempt)
        files = LocalFiles(directory, changes)
        exported: list[ExportedRange] = []
        found = ExportLosses(SkippedRanges(files), exported)
        try:
            for line in add_lines(Manifest(files), found, written, FORMAT, attempt):
                exported.append(line)  # noqa: PERF402 - it may be killed between
        except KilledError:
            kills += 1
        later = Manifest(LocalFiles(directory)).lines()
        reported = {
            offset
            for each in losses(directory, later).expired_now(
                [stored(300)], [planned(300, 400)], lambda _: True
            )
            for offset in range(each.start_offset, each.end_offset)
        }
        if any(line.end_offset == 300 for line in later):
            assert reported == set(range(50, 100))
        if kills == changes:  # the export has ended
            assert len(later) == 2
            break
    assert kills > 3
