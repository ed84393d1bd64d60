"""What counts as exported, whenever an export is killed and whoever else exports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rsm.segment.errors import CorruptError, FencedError
from rsm.segment.ranges import OffsetRange
from spark_tools.export.manifest import Manifest
from spark_tools.export.ranges import ExportedRange, PlannedRange
from spark_tools.reading.options import ReadOptions
from tests.metadata_builder import ORDERS
from tests.unit.spark_tools.local_files import KilledError, LocalFiles

OPTIONS = ReadOptions.of({"subscribe": ORDERS.topic})
NOW = datetime(2030, 5, 17, tzinfo=UTC)


def prepared(files: LocalFiles, start: int, end: int) -> ExportedRange:
    """The line of a range whose files are written, two of them and Spark's own."""
    attempt = Manifest(files).new_attempt(NOW)
    planned = PlannedRange(
        topic_id_partition=ORDERS, offsets=OffsetRange(start_offset=start, end_offset=end)
    )
    line = planned.exported(OPTIONS, end - start, attempt)
    directory = Manifest(files).directory(attempt)
    middle = (start + end) // 2
    for first, last in ((start, middle), (middle, end)):
        text = " ".join(map(str, range(first, last)))
        files.write(f"{directory}/part-{attempt}-{first}", text)
    files.write(f"{directory}/_SUCCESS", "")
    return line


def readable_offsets(directory: Path) -> list[int]:
    """What a reader of `data` gets."""
    files = [each for each in (directory / "data").rglob("*") if each.is_file()]
    return sorted(int(word) for each in files for word in each.read_text().split())


def test_add_when_it_returns_then_the_line_and_its_files_are_there(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    line = prepared(files, 0, 10)

    Manifest(files).add(line)

    assert Manifest(files).lines() == [line]
    assert readable_offsets(tmp_path) == list(range(10))
    assert files.names("_attempts") == []


def test_add_when_killed_at_any_point_then_done_again_each_offset_is_there_once(
    tmp_path: Path,
) -> None:
    kills = 0
    for changes in range(1000):
        directory = tmp_path / str(changes)
        line = prepared(LocalFiles(directory), 0, 10)
        try:
            Manifest(LocalFiles(directory, changes)).add(line)
        except KilledError:
            kills += 1
        files = LocalFiles(directory)
        manifest = Manifest(files)
        done = manifest.lines()
        manifest.complete(done, NOW)
        assert readable_offsets(directory) == [o for each in done for o in range(len(each.offsets))]
        if not done:
            manifest.add(prepared(files, 0, 15))
            assert readable_offsets(directory) == list(range(15))
        if kills == changes:  # it came to its end
            break
    assert kills > 4


@pytest.mark.parametrize(("start", "end"), [(0, 10), (0, 15), (5, 8), (8, 20), (3, 10)])
def test_add_when_another_export_was_faster_then_nothing_of_this_one_counts(
    tmp_path: Path, start: int, end: int
) -> None:
    files = LocalFiles(tmp_path)
    slow, fast = prepared(files, start, end), prepared(files, 0, 10)
    Manifest(files).add(fast)

    with pytest.raises(FencedError, match="another export"):
        Manifest(files).add(slow)

    assert Manifest(files).lines() == [fast]
    assert readable_offsets(tmp_path) == list(range(10))
    assert files.names("_attempts") == []


def test_add_when_ranges_only_touch_then_all_count(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)

    for start, end in ((20, 30), (0, 10), (10, 20)):
        Manifest(files).add(prepared(files, start, end))

    assert readable_offsets(tmp_path) == list(range(30))


def test_complete_when_attempts_are_old_then_removed_and_others_left(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    prepared(files, 0, 10)
    manifest = Manifest(files)

    manifest.complete([], NOW + timedelta(days=6))
    young = len(files.names("_attempts"))
    manifest.complete([], NOW + timedelta(days=8))

    assert (young, files.names("_attempts")) == (1, [])


@pytest.mark.parametrize("text", ["", "{}", "[1]", "no line", '{"topic": 1}'])
def test_lines_when_one_is_garbage_then_corrupt(tmp_path: Path, text: str) -> None:
    """To take it for nothing would export its offsets again."""
    files = LocalFiles(tmp_path)
    Manifest(files).add(prepared(files, 0, 10))
    files.write("manifest/other.json", text)

    with pytest.raises(CorruptError, match="not a line of a manifest"):
        Manifest(files).lines()
