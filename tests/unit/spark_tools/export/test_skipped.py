"""The records of ranges that could not be exported."""

from __future__ import annotations

from pathlib import Path

import pytest

from rsm.segment.ranges import OffsetRange
from spark_tools.export.skipped import (
    SkipCause,
    SkippedRange,
    SkippedRanges,
    expired,
    unexported,
)
from tests.metadata_builder import ORDERS
from tests.unit.spark_tools.local_files import KilledError, LocalFiles


def offsets(start: int, end: int) -> OffsetRange:
    return OffsetRange(start_offset=start, end_offset=end)


def skipped(start: int, end: int, reason: str = "away") -> SkippedRange:
    return SkippedRange.of(ORDERS, offsets(start, end), SkipCause.UNREADABLE, reason)


KEY = skipped(0, 1).key


def test_record_when_killed_at_any_point_then_nothing_that_is_skipped_is_missing(
    tmp_path: Path,
) -> None:
    kills = 0
    for changes in range(100):
        directory = tmp_path / str(changes)
        SkippedRanges(LocalFiles(directory)).replace([skipped(0, 10), skipped(20, 30)])
        try:
            SkippedRanges(LocalFiles(directory, changes)).replace([skipped(5, 10), skipped(20, 30)])
        except KilledError:
            kills += 1
        left = SkippedRanges(LocalFiles(directory)).ranges()
        assert {(5, 10), (20, 30)} <= {
            (each.start_offset, each.end_offset)
            for each in unexported(left, {KEY: [offsets(0, 5)]})
        }
        if kills == changes:  # the export has ended
            assert sorted(str(each.offsets) for each in left) == ["[20, 30)", "[5, 10)"]
            break
    assert kills > 1


def test_unexported_when_ranges_overlap_then_each_offset_once_by_the_first() -> None:
    found = unexported(
        [skipped(5, 15, "new"), skipped(0, 30, "old")], {KEY: [offsets(20, 25), offsets(0, 2)]}
    )

    assert [(str(each.offsets), each.reason) for each in found] == [
        ("[5, 15)", "new"),
        ("[2, 5)", "old"),
        ("[15, 20)", "old"),
        ("[25, 30)", "old"),
    ]


def test_expired_when_the_log_begins_within_a_range_then_what_lies_below_once() -> None:
    found = expired([skipped(0, 10), skipped(15, 25), skipped(30, 40)], {KEY: 20})

    assert [(str(each.offsets), each.cause) for each in found] == [
        ("[0, 10)", "expired"),
        ("[15, 20)", "expired"),
    ]
    assert expired(found, {KEY: 20}) == []


@pytest.mark.parametrize("text", ["", "{}", "[1]", "no line", '{"topic": 1}'])
def test_record_when_one_is_garbage_then_a_warning_names_it_and_others_are_read(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = LocalFiles(tmp_path)
    SkippedRanges(files).replace([skipped(0, 10)])
    files.write("skipped/topic_id=x/partition=0/5-9.json", text)

    found = SkippedRanges(files)

    assert found.ranges() == [skipped(0, 10)]
    assert "skipped/topic_id=x/partition=0/5-9.json" in caplog.text
    found.replace([])
    assert files.exists("skipped/topic_id=x/partition=0/5-9.json")


class Torn(LocalFiles):
    """A process that is killed as it writes, which leaves an empty file."""

    def write(self, path: str, text: str) -> None:
        super().write(path, "")
        raise KilledError


@pytest.mark.parametrize("reason", ["away", "for another reason"])
def test_record_when_killed_as_it_is_written_then_none_is_torn(
    tmp_path: Path, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    SkippedRanges(LocalFiles(tmp_path)).replace([skipped(0, 10)])

    with pytest.raises(KilledError):
        SkippedRanges(Torn(tmp_path)).replace([skipped(0, 10, reason), skipped(20, 30)])

    assert SkippedRanges(LocalFiles(tmp_path)).ranges() == [skipped(0, 10)]
    assert caplog.text == ""


def test_record_when_its_reason_changes_then_the_new_one_alone_is_left(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    SkippedRanges(files).replace([skipped(0, 10)])
    SkippedRanges(files).replace([skipped(0, 10, "for another reason")])

    assert SkippedRanges(files).ranges() == [skipped(0, 10, "for another reason")]
    assert files.names("_attempts") == []
