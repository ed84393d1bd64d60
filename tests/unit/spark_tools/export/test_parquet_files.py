"""Rows as Parquet files by date: which file has which rows, in which order."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from spark_tools.export.parquet_files import ParquetFiles
from spark_tools.export.range_reader import with_date

DAY_US = 86_400_000_000


def rows(first_offset: int, times_us: list[int]) -> pa.RecordBatch:
    offsets = list(range(first_offset, first_offset + len(times_us)))
    return pa.RecordBatch.from_pydict(
        {"offset": offsets, "timestamp": pa.array(times_us, pa.timestamp("us", tz="UTC"))}
    )


def in_files(directory: Path, files: ParquetFiles, dates: int) -> list[int]:
    """Return all offsets; check that a file's offsets ascend and are of its date."""
    found = []
    for name in files.names:
        offsets = parquet.read_table(directory / name, partitioning=None)["offset"].to_pylist()
        assert offsets == sorted(offsets)
        (day,) = {offset % dates for offset in offsets}
        assert name.startswith(f"date={date(1970, 1, 1) + timedelta(days=day)}/")
        found += offsets
    assert len(set(files.names)) == len(files.names)
    return sorted(found)


def test_write_when_timestamps_are_scattered_then_a_file_for_each_date(tmp_path: Path) -> None:
    """A file per change of the date could mean a file per row."""
    dates = 150
    files = ParquetFiles(tmp_path, "part", ("offset",), "snappy")
    for first in range(0, 600, 4):
        times = [(offset % dates) * DAY_US + 5 for offset in range(first, first + 4)]
        files.write(with_date(rows(first, times)))
    files.close()

    assert in_files(tmp_path, files, dates) == list(range(600))
    assert len(files.names) == dates


def test_write_when_rows_are_written_several_times_then_a_date_continues_in_its_file(
    tmp_path: Path,
) -> None:
    """With more dates than open files, some dates have two files."""
    for dates, is_one_each in ((20, True), (150, False)):
        directory = tmp_path / str(dates)
        files = ParquetFiles(directory, "part", ("offset",), "snappy", gathered_bytes=1)
        for turn in range(3):
            numbers = range(turn * dates, (turn + 1) * dates)
            times = [(number % dates) * DAY_US + 5 for number in numbers]
            files.write(with_date(rows(numbers.start, times)))
        files.close()

        assert in_files(directory, files, dates) == list(range(3 * dates))
        assert (len(files.names) == dates) is is_one_each
        assert len(files.names) <= 3 * dates


def test_write_when_without_dates_then_one_file_with_all_rows(tmp_path: Path) -> None:
    files = ParquetFiles(tmp_path, "part", ("offset", "timestamp"), "zstd")

    files.write(rows(0, [1, 2]))
    files.write(rows(2, [3]))
    files.close()

    (name,) = files.names
    assert parquet.read_table(tmp_path / name).column("offset").to_pylist() == [0, 1, 2]


def test_date_when_a_producer_set_a_time_that_no_calendar_has_then_none(tmp_path: Path) -> None:
    """One such record would turn the column `date` into text for readers."""
    far = 9_000_000_000_000_000_000
    batch = with_date(rows(0, [0, far, -far, -1, DAY_US]))

    dates = [None if each is None else str(each) for each in batch.column("date").to_pylist()]
    assert dates == ["1970-01-01", None, None, "1969-12-31", "1970-01-02"]
    files = ParquetFiles(tmp_path, "part", ("offset",), "snappy")
    files.write(batch)
    files.close()
    assert "date=__HIVE_DEFAULT_PARTITION__" in {name.split("/")[0] for name in files.names}
