"""Which ranges count as exported if an export is killed, also while another one runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rsm.segment.errors import CorruptError, FencedError, InvalidConfigError
from rsm.segment.ranges import OffsetRange
from spark_tools.export.file_ranges import FileRange, WrittenFiles, lines_of
from spark_tools.export.manifest import Manifest
from spark_tools.export.ranges import ExportedRange, ExportFormat
from spark_tools.reading.options import ReadOptions
from tests.metadata_builder import ORDERS
from tests.unit.spark_tools.local_files import KilledError, LocalFiles

FORMAT = ExportFormat.of(ReadOptions.of({"subscribe": ORDERS.topic}), by_date=False)
NOW = datetime(2030, 5, 17, tzinfo=UTC)


def written(files: LocalFiles, attempt: str, start: int, end: int) -> WrittenFiles:
    """Write two files, and return their range."""
    directory = Manifest(files).directory(attempt)
    names = []
    middle = (start + end) // 2
    for first, last in ((start, middle), (middle, end)):
        text = " ".join(map(str, range(first, last)))
        names.append(f"part-{first}-{attempt}")
        files.write(f"{directory}/{names[-1]}", text)
    offsets = OffsetRange(start_offset=start, end_offset=end)
    return WrittenFiles(
        file_range=FileRange(topic_id_partition=ORDERS, offsets=offsets, pieces=()),
        end_offset=end,
        records_count=end - start,
        names=tuple(names),
    )


def prepared(files: LocalFiles, *ranges: tuple[int, int]) -> list[ExportedRange]:
    """Write ranges in one attempt, and return its lines; adjacent ranges have one line."""
    attempt = Manifest(files).new_attempt(NOW)
    every = [written(files, attempt, *each) for each in ranges]
    files.write(f"{Manifest(files).directory(attempt)}/_SUCCESS", "")
    return lines_of(every, FORMAT, attempt)


def added(files: LocalFiles, *ranges: tuple[int, int]) -> list[ExportedRange]:
    """Write ranges, and add their lines as the job does."""
    manifest = Manifest(files)
    manifest.lines()
    lines = [manifest.add(line) for line in prepared(files, *ranges)]
    for line in lines:
        manifest.discard(line.attempt)
    return lines


def readable_offsets(directory: Path) -> list[int]:
    """Return the offsets that a reader of `data` gets."""
    files = [each for each in (directory / "data").rglob("*") if each.is_file()]
    return sorted(int(word) for each in files for word in each.read_text().split())


def test_add_when_it_returns_then_the_line_and_its_files_are_there(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)

    lines = added(files, (0, 10))

    assert Manifest(files).lines() == lines
    assert readable_offsets(tmp_path) == list(range(10))
    assert files.names("_attempts") == []
    assert sorted(files.names(lines[0].path)) == sorted(lines[0].files)


def test_add_when_killed_at_any_point_then_done_again_each_offset_is_there_once(
    tmp_path: Path,
) -> None:
    """An attempt of two ranges that do not adjoin."""
    kills = 0
    wanted = (0, 10), (20, 30)
    for changes in range(1000):
        directory = tmp_path / str(changes)
        lines = prepared(LocalFiles(directory), *wanted)
        killed = Manifest(LocalFiles(directory, changes))
        try:
            for line in lines:
                killed.add(line)
            killed.discard(lines[0].attempt)
        except KilledError:
            kills += 1
        files = LocalFiles(directory)
        manifest = Manifest(files)
        done = manifest.lines()
        manifest.complete(done, NOW)
        expected = sorted(o for e in done for o in range(e.start_offset, e.end_offset))
        assert readable_offsets(directory) == expected
        if not done:
            added(files, (0, 30))
            assert readable_offsets(directory) == list(range(30))
        if kills == changes:  # the export has ended
            assert files.names("_attempts") == []
            break
    assert kills > 8


@pytest.mark.parametrize(("start", "end"), [(0, 10), (0, 15), (5, 8), (8, 20), (3, 10)])
def test_add_when_another_export_was_faster_then_nothing_of_this_one_counts(
    tmp_path: Path, start: int, end: int
) -> None:
    files = LocalFiles(tmp_path)
    slow = Manifest(files)
    slow.lines()
    (line,) = prepared(files, (start, end))
    fast = added(files, (0, 10))

    with pytest.raises(FencedError, match="another export"):
        slow.add(line)

    slow.discard(line.attempt)
    assert Manifest(files).lines() == fast
    assert readable_offsets(tmp_path) == list(range(10))
    assert files.names("_attempts") == []


class Overtaken(LocalFiles):
    """Another export adds a line right before this one's line gets its number."""

    def __init__(self, directory: Path, other: tuple[int, int]) -> None:
        super().__init__(directory)
        self._other: tuple[int, int] | None = other
        self._root = directory

    def move(self, path: str, target: str) -> bool:
        other, self._other = self._other, None
        if other is not None:
            added(LocalFiles(self._root), other)
        return super().move(path, target)


def test_add_when_overtaken_after_it_looked_for_others_then_fenced(tmp_path: Path) -> None:
    """The ranges begin elsewhere: two exports may cut a partition differently."""
    (line,) = prepared(LocalFiles(tmp_path), (5, 20))

    with pytest.raises(FencedError, match="another export"):
        Manifest(Overtaken(tmp_path, (0, 10))).add(line)

    assert readable_offsets(tmp_path) == list(range(10))


class Crossed(LocalFiles):
    """Another export's line replaces this one's right after the move, as `file:` allows."""

    def move(self, path: str, target: str) -> bool:
        is_moved = super().move(path, target)
        if is_moved and target.startswith("manifest/"):
            self.write(target, self.read(target).replace('"attempt": "', '"attempt": "other-'))
        return is_moved


def test_add_when_another_line_is_there_after_the_move_then_fenced_and_no_file_is_moved(
    tmp_path: Path,
) -> None:
    (line,) = prepared(LocalFiles(tmp_path), (0, 10))

    with pytest.raises(FencedError, match="another export used its number"):
        Manifest(Crossed(tmp_path)).add(line)

    assert readable_offsets(tmp_path) == []


@pytest.mark.parametrize("directory", ["", "date=2030-05-17/"])
def test_add_when_the_driver_does_not_see_a_file_then_nothing_counts(
    tmp_path: Path, directory: str
) -> None:
    """An executor of another host has written it there."""
    files = LocalFiles(tmp_path)
    (line,) = prepared(files, (0, 10))
    elsewhere = f"{directory}{0:020d}-{10:020d}-part-00000-x.parquet"

    with pytest.raises(InvalidConfigError, match="that all hosts share"):
        Manifest(files).add(replace(line, files=(*line.files, elsewhere)))

    assert Manifest(files).lines() == []
    assert readable_offsets(tmp_path) == []


def test_add_when_overtaken_by_another_range_then_both_count(tmp_path: Path) -> None:
    (line,) = prepared(LocalFiles(tmp_path), (10, 20))

    Manifest(Overtaken(tmp_path, (0, 10))).add(line)

    assert readable_offsets(tmp_path) == list(range(20))
    lines = Manifest(LocalFiles(tmp_path)).lines()
    assert sorted((each.start_offset, each.number) for each in lines) == [(0, 0), (10, 1)]


def test_add_when_ranges_only_touch_then_all_count(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)

    for offsets in ((20, 30), (0, 10), (10, 20)):
        added(files, offsets)

    assert readable_offsets(tmp_path) == list(range(30))


def test_complete_when_attempts_are_old_then_removed_and_others_left(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    prepared(files, (0, 10))
    manifest = Manifest(files)

    manifest.complete([], NOW + timedelta(days=6))
    young = len(files.names("_attempts"))
    manifest.complete([], NOW + timedelta(days=8))

    assert (young, files.names("_attempts")) == (1, [])


def test_complete_when_the_attempt_has_other_files_then_its_export_may_still_add_them(
    tmp_path: Path,
) -> None:
    """The other export may still run, and add its lines one by one."""
    files = LocalFiles(tmp_path)
    slow = Manifest(files)
    one, other = prepared(files, (0, 10), (20, 30))
    slow.add(one)

    Manifest(files).complete(Manifest(files).lines(), NOW)
    slow.add(other)

    assert readable_offsets(tmp_path) == [*range(10), *range(20, 30)]


def test_complete_when_a_file_is_in_neither_place_then_corrupt(tmp_path: Path) -> None:
    """If the range counted as exported, its records would be missing."""
    files = LocalFiles(tmp_path)
    (line,) = added(files, (0, 10))
    files.remove(f"{line.path}/{line.files[0]}")
    files.write(f"_attempts/{line.attempt}/_SUCCESS", "")

    with pytest.raises(CorruptError, match="cannot move a file of the export"):
        Manifest(files).complete([line], NOW)


def test_lines_when_an_earlier_version_wrote_them_then_another_directory_is_asked_for(
    tmp_path: Path,
) -> None:
    files = LocalFiles(tmp_path)
    files.write("manifest/0.json", '{"topic": "orders", "path": "data/x", "attempt": "a"}')

    with pytest.raises(InvalidConfigError, match="Export to another directory"):
        Manifest(files).lines()


@pytest.mark.parametrize("text", ["", "{}", "[1]", "no line", '{"topic": 1}'])
def test_lines_when_one_is_garbage_then_corrupt(tmp_path: Path, text: str) -> None:
    """If the line were ignored, its offsets would be exported again."""
    files = LocalFiles(tmp_path)
    added(files, (0, 10))
    files.write("manifest/other.json", text)

    with pytest.raises(CorruptError, match="it has a malformed line"):
        Manifest(files).lines()
